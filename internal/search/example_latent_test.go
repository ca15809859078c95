package search_test

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/millrace/millrace/internal/search"
)

// shop yields the terms of the passages of a shop with two kinds of products.
func shop() iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for i := range 200 {
			text := "bicycle wheel tire saddle pump spoke brake chain"
			if i%2 == 1 {
				text = "teapot kettle cup leaf brew strainer saucer steep"
			}
			words := strings.Fields(text)
			// Each passage omits another one of the eight words.
			words = append(words[:i/2%7], words[i/2%7+1:]...)
			if !yield(append(words, fmt.Sprint("article", i/4)), nil) {
				return
			}
		}
	}
}

func ExampleFit() {
	model, err := search.Fit(context.Background(), shop(), &search.FitOptions{Dimensions: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	question, _ := model.Vector([]string{"wheel", "brake"})
	for _, text := range []string{"tire chain", "kettle leaf"} {
		passage, _ := model.Vector(strings.Fields(text))
		fmt.Printf("%s: %t\n", text, search.Similarity(question, passage) > 0.5)
	}
	// Output:
	// tire chain: true
	// kettle leaf: false
}

func ExampleNewVector() {
	a := search.NewVector([]float32{0.6, 0.8})
	b := search.NewVector([]float32{1.2, 1.6})
	fmt.Printf("%d dimensions in %d bytes, similarity %.2f\n", a.Dimensions(), len(a), search.Similarity(a, b))
	// Output: 2 dimensions in 6 bytes, similarity 1.00
}
