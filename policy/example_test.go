package policy_test

import (
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
)

func Example() {
	p := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}, Access: "everybody"}
	body := policy.WriteARC(p)
	back, err := policy.ReadARC(body)
	fmt.Printf("%s\n%v %q %v\n", body, back.Purposes, back.Access, err)
	// Output: {"purposes":{"ai-train":false},"access":"everybody"}
	// map[ai-train:false] "everybody" <nil>
}
