package caddy_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/all"
)

// conforms runs the rules of every published protocol against a site from outside.
func conforms(t *testing.T, base string) {
	t.Helper()
	target, err := check.NewTarget(base+"/", http.DefaultClient, nil)
	if err != nil {
		t.Fatal(err)
	}
	var suites []check.Suite
	for _, p := range all.Published(nil) {
		suites = append(suites, check.Suite{Name: p.Name, Rules: p.Rules()})
	}
	report, err := check.Run(t.Context(), target, suites, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Level == check.Must {
			t.Errorf("%s: %s: got %s, want %s", f.Rule, f.URL, f.Got, f.Want)
		} else {
			t.Logf("%s: %s: got %.200s, want %s", f.Rule, f.URL, f.Got, f.Want)
		}
	}
	for name, r := range report.Protocols {
		if !r.Found || r.Must.Pass == 0 || r.NotRun > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		t.Logf("%s: %+v", name, *r)
	}
}

// A static site behind encode conforms to every protocol.
func TestConforms(t *testing.T) {
	base := "http://localhost:" + testkit.FreePort(t)
	run(t, base+" {\nencode\nmillrace\nroot * "+filepath.Join("..", "testdata", "sites", "handbook")+"\nfile_server\n}\n")
	eventually(t, base+"/llms.txt", base+"/", "")
	conforms(t, base)
}

// caddyfileBlock matches a Caddyfile in Markdown.
var caddyfileBlock = regexp.MustCompile("(?s)```caddyfile\n(.*?)```")

// Every Caddyfile of the documentation is valid.
func TestGuide(t *testing.T) {
	ranges := filepath.Join(t.TempDir(), "gptbot.json")
	if err := os.WriteFile(ranges, []byte(`{"prefixes":[{"ipv4Prefix":"192.0.2.0/24"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", filepath.Join("..", "docs", "guides", "serve-with-caddy.md")} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		blocks := caddyfileBlock.FindAllSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no Caddyfile", name)
		}
		for _, m := range blocks {
			block := strings.ReplaceAll(string(m[1]), "/etc/caddy/gptbot.json", ranges)
			if !strings.HasPrefix(block, "example.com {") {
				block = "example.com {\n" + block + "\n}\n"
			}
			if _, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(globals+block), map[string]any{"filename": name}); err != nil {
				t.Errorf("%s: %v %v in\n%s", name, err, warnings, block)
			}
		}
	}
}
