package wordpress_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/millrace/millrace/origin/wordpress"
)

func ExampleFind() {
	site := httptest.NewServer(http.NotFoundHandler()) // stands for one without WordPress
	defer site.Close()
	root, err := wordpress.Find(context.Background(), site.Client(), site.URL)
	fmt.Println(root == "", err != nil)
	// Output: true true
}
