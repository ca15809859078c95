package webauth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/webauth"
)

// A robot signs a request, and a site fetches the keys from the robot's host.
func Example() {
	key, err := webauth.NewKey(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	pages := http.NewServeMux()
	bot := httptest.NewServer(pages)
	defer bot.Close()
	directory, _ := webauth.NewDirectory(bot.URL, []*webauth.Key{key}, nil)
	pages.Handle(webauth.DirectoryPath, directory)

	request, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://site.example/page", http.NoBody)
	signer, _ := webauth.NewSigner(key, bot.URL)
	fmt.Println(signer.Sign(request))

	// The host is this machine. Never set these two options on the web.
	client := fetch.New(webauth.ClientOptions(&fetch.Options{AllowPrivate: true}))
	site := webauth.NewVerifier(&webauth.VerifierOptions{Client: client.HTTP(), Bases: []string{"https://site.example"}, AllowHTTP: true})
	name, err := site.Verify(context.Background(), request)
	fmt.Println("http://"+name == bot.URL, err)

	_, err = site.Verify(context.Background(), request)
	fmt.Println(millrace.ErrorCode(err))
	// Output:
	// <nil>
	// true <nil>
	// nonce-reused
}
