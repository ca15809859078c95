package bots_test

import (
	"fmt"

	"github.com/millrace/millrace/internal/bots"
)

func Example() {
	table, err := bots.New(nil)
	if err != nil {
		panic(err)
	}
	bot := table.Identify("Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)")
	fmt.Println(bot.Name, "of", bot.Family, "comes for", bot.Purpose)
	// Output: GPTBot of openai comes for training
}
