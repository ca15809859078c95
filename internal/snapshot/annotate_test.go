package snapshot

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// annotated annotates a page and checks the result. Without the additions, the page is
// unchanged. A second call adds nothing. Lint has no finding that it did not have for the
// source. If the page cannot be annotated, annotated returns the error.
func annotated(t testing.TB, source []byte) ([]byte, []Addition, error) {
	t.Helper()
	before, err := Lint(t.Context(), source, address)
	if err != nil {
		return nil, nil, err
	}
	out, added, err := Annotate(t.Context(), source, address)
	if errors.Is(err, millrace.ErrTooLarge) {
		return nil, nil, err
	}
	if err != nil {
		t.Fatal(err)
	}
	back := out
	for i := len(added) - 1; i >= 0; i-- {
		shift := 0
		for _, a := range added[:i] {
			shift += len(a.Text)
		}
		at := added[i].Offset + shift
		if !bytes.HasPrefix(back[at:], []byte(added[i].Text)) {
			t.Fatalf("%q is not at %d", added[i].Text, at)
		}
		back = append(back[:at:at], back[at+len(added[i].Text):]...)
	}
	if !bytes.Equal(back, source) {
		t.Errorf("without the additions, the page differs:\n%s", cmp.Diff(string(source), string(back)))
	}
	again, more, err := Annotate(t.Context(), out, address)
	if err != nil || len(more) > 0 || !bytes.Equal(again, out) {
		t.Errorf("a second call adds %d additions (%v): %+v\nto %s", len(more), err, more, out)
	}
	had := map[string]int{}
	key := func(f Finding) string {
		if f.Rule == OutputShape {
			return string(f.Rule) // the message contains the number of parts, which has changed
		}
		return string(f.Rule) + f.Path + f.Message
	}
	for _, f := range before {
		had[key(f)]++
	}
	after, err := Lint(t.Context(), out, address)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range after {
		if had[key(f)]--; had[key(f)] < 0 && len(before) < maxFindings {
			t.Errorf("an addition has a finding: %+v\nin %s", f, out)
		}
	}
	return out, added, nil
}

func TestAnnotate(t *testing.T) {
	const source = `<!DOCTYPE html>
<html lang="en"><head><title>The mill</title></head>
<body class="home">
<header><form role="search"><input type="search" name="q" placeholder="Search"></form></header>
<main>
<h1>The mill of Alderford</h1>
<p>The mill has stood at the ford for three hundred years, and still grinds.</p>
<section>
<h2>The wheel &amp; the stones</h2>
<p>The wheel is of oak, and was last mended by the grandfather of the miller.</p>
<img src="wheel.jpg" alt="The wheel">
</section>
<section><h2>Write to us</h2>
<p>Letters are read on Tuesdays, and are answered before the week is over.</p>
<form id="letter">
<label for="a">Your address</label><INPUT id=a type=email name=address>
<input name="subject" placeholder="What it is about"/>
<button>Send</button>
</form>
</section>
</main>
</body></html>
`
	out, added, err := annotated(t, []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range added {
		got = append(got, strings.TrimPrefix(a.Attribute, Prefix)+"="+a.Value+" "+a.Path)
	}
	want := []string{
		"page=us html > body",
		"field=q html > body > header > form > input",
		"label=Search html > body > header > form > input",
		"heading=title html > body > main > h1",
		"summary=summary html > body > main > p",
		"section=the-wheel-the-stones html > body > main > section:nth-of-type(1)",
		"heading=title html > body > main > section:nth-of-type(1) > h2",
		"summary=summary html > body > main > section:nth-of-type(1) > p",
		"media=the-wheel html > body > main > section:nth-of-type(1) > img",
		"section=write-to-us html > body > main > section:nth-of-type(2)",
		"heading=title html > body > main > section:nth-of-type(2) > h2",
		"summary=summary html > body > main > section:nth-of-type(2) > p",
		"group=letter form#letter",
		"field=address input#a",
		"context=personal input#a",
		"field=subject form#letter > input:nth-of-type(2)",
		"label=What it is about form#letter > input:nth-of-type(2)",
		"role=button form#letter > button",
		"event=click form#letter > button",
		"action=submit form#letter > button",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("additions (-want +got):\n%s", diff)
	}
	if !bytes.Contains(out, []byte(`<INPUT data-ai-field="address" data-ai-context="personal" id=a type=email name=address>`)) {
		t.Errorf("%s", out)
	}
}

// TestAnnotateForms annotates pages with unusual markup.
func TestAnnotateForms(t *testing.T) {
	for name, source := range map[string]string{
		"nothing":            "",
		"text":               "Only words.",
		"no body":            "<h1>A title that is one</h1><p>And a paragraph that is long enough for a summary.",
		"slash":              "<main><h1>Title</h1><p>Words enough for a page, one would think, so here they are.</p><input/name=x><input name=y/></main>",
		"unclosed":           "<form><b><input name=a><p><b><input name=b><p><input",
		"twice":              "<body><body class=x><input name=a>",
		"unquoted":           "<body class=a/b><img src=a.png alt=x/>",
		"comment":            "<!-- <input name=no> --><input name=yes>",
		"script":             "<script>'<input name=no>'</script><textarea><input name=no></textarea>",
		"latin 1":            "<meta charset=iso-8859-1><main><h1>Fl\xfcsse</h1><section><h2>\xdcber die M\xfchle</h2><p>Das Rad dreht sich seit langer Zeit im Wasser.</p></section></main>",
		"same names":         "<main><section><h2>A</h2></section><section><h2>A</h2></section><section><h2>Fields</h2></section></main>",
		"flat":               "<main><h1>T</h1><h2>One</h2><p>Words of the first part, which are not many.</p><h2>Two</h2><p>Words of the second.</p></main>",
		"quotes":             `<main><h1>T</h1><section><h2>"Quoted" & <i>more</i></h2></section><input aria-label='"A" & <b>'></main>`,
		"password":           "<form><input type=password name=p><input autocomplete='cc-number' name=c><input type=tel name=t></form>",
		"forms in parts":     "<main><form><div><h2>One</h2><input name=a></div><div><h2>Two</h2><input name=b></div></form><p>Some words of the page that stand in no form.</p></main>",
		"annotated":          `<body data-ai-page="x"><section><h2>No more structure</h2></section><input name=a></body>`,
		"fields":             `<input data-ai-field="x"><label>Y <input data-ai-field="y"></label>`,
		"wrong":              `<div data-ai-group="x" data-ai-what="y"><input name=z></div>`,
		"select":             "<select name=s><option>a</select><input type=checkbox><input type=hidden name=h>",
		"nested too deep":    strings.Repeat("<div>", 2000) + "<input name=deep>" + strings.Repeat("<b>", 300) + "<input name=deeper>",
		"svg":                "<svg><title><b>t</b></title><style><a></style><![CDATA[<input name=no>]]></svg><input name=yes>",
		"plaintext":          "<input name=yes><plaintext><input name=no>",
		"a label in between": `<b data-ai-label="x">X</b><label>N <input name=new></label><input data-ai-field=old>`,
		"template":           "<template><input name=no></template>",
		"nul":                "<inp\x00ut name=a><input name=b\x00>",
		"line ends":          "<main>\r\n<h1\r\n>T</h1>\r<p\t>Words that are long enough to be a summary.</p></main>",
	} {
		t.Run(name, func(t *testing.T) {
			_, added, err := annotated(t, []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(added); (name == "nothing" || name == "text" || name == "template") && n > 0 {
				t.Errorf("%d additions", n)
			}
		})
	}
}

// TestAnnotateSites annotates the pages of the test sites, of package extract, and of
// MILLRACE_TEST_DATA if it is set.
func TestAnnotateSites(t *testing.T) {
	dirs := []string{"../../testdata/sites", "../../extract/testdata"}
	limit := 200
	if testing.Short() {
		limit = 30
	}
	if data := os.Getenv("MILLRACE_TEST_DATA"); data != "" && !testing.Short() {
		dirs, limit = append(dirs, filepath.Join(data, "wcxb")), 150
	}
	pages, structure := 0, 0
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(strings.TrimSuffix(file, ".gz"), ".html") || pages >= limit {
				return err
			}
			source, err := os.ReadFile(file)
			if err == nil && strings.HasSuffix(file, ".gz") {
				var z *gzip.Reader
				if z, err = gzip.NewReader(bytes.NewReader(source)); err == nil {
					source, err = io.ReadAll(z)
				}
			}
			if err != nil {
				return err
			}
			pages++
			t.Run(filepath.ToSlash(file), func(t *testing.T) {
				_, added, err := annotated(t, source)
				if invalid := strings.Contains(file, "utf16") || strings.Contains(file, "picture"); (err != nil) != invalid {
					t.Error(err)
				}
				if len(added) > 2 {
					structure++
				}
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if pages == 0 || structure*2 < pages {
		t.Errorf("%d of %d pages were found to have structure", structure, pages)
	}
}

func TestRefused(t *testing.T) {
	for name, source := range map[string]string{
		"UTF-16":   "\xFF\xFE<\x00p\x00>\x00",
		"ISO-2022": "<meta charset=iso-2022-jp><p>\x1B$B$\"\x1B(B",
		"binary":   "\x7fELF\x00\x01\x02",
		"PDF":      "%PDF-1.7",
	} {
		if _, err := Lint(t.Context(), []byte(source), address); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: lint: %v", name, err)
		}
		if _, _, err := Annotate(t.Context(), []byte(source), address); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: annotate: %v", name, err)
		}
	}
	if _, err := Lint(t.Context(), make([]byte, MaxSource+1), address); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, err := Lint(t.Context(), nil, "nowhere"); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("without a URL: %v", err)
	}
}

// A page that needs more attributes than a snapshot may have is refused before all of them are
// proposed.
func TestAnnotateMuch(t *testing.T) {
	page := "<body>" + strings.Repeat("<input type=password name=é>", 20_000)
	if _, _, err := Annotate(t.Context(), []byte(page), address); !errors.Is(err, millrace.ErrTooLarge) || millrace.ErrorCode(err) != "snapshot-attributes" {
		t.Errorf("%.200v", err)
	}
}

// FuzzAnnotate runs the checks of annotated on any document.
func FuzzAnnotate(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, source []byte) {
		_, _, err := annotated(t, source)
		if err != nil && !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
			t.Error(err)
		}
	})
}

// FuzzExtra builds the snapshot of any document. If it exists, it is canonical and valid except for
// empty names.
func FuzzExtra(f *testing.F) {
	seeds(f)
	rules, err := extract.NewRules(&extract.RulesOptions{Extra: Extra()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		const hiddenHTML = `<!DOCTYPE html><body><input data-ai-field="f" value="NEVER-TOLD"><p data-ai-visibility="hidden" data-ai-content="c">NEVER-TOLD</p>`
		source = append([]byte(hiddenHTML), source...)
		res, err := extract.HTML(t.Context(), source, address, &extract.Options{Rules: rules})
		if err != nil {
			return
		}
		raw := res.Page.Extra[ExtraKey]
		if raw == nil {
			return
		}
		if bytes.Contains(raw, []byte("NEVER-TOLD")) {
			t.Errorf("the snapshot contains hidden content: %s", raw)
		}
		var page struct{ Page string }
		if err := json.Unmarshal(raw, &page); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, fault := range Validate(raw) {
			if !strings.HasSuffix(fault.Message, isEmpty) && fault.Message != emptyAction && page.Page != "" {
				t.Errorf("%+v: %s", fault, raw)
			}
		}
	})
}

// FuzzValidate reads any JSON as a snapshot.
func FuzzValidate(f *testing.F) {
	f.Add([]byte(`{"page":"signup","sections":[{"name":"s","fields":["email",{"field":"x"}]}],"ai_tags":["a"],"ai_context":"b"}`))
	f.Add([]byte(`{"page":null,"texts":[{"text":1}],"~/":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(Validate(data)) == 0 && !json.Valid(data) {
			t.Errorf("%q is not JSON", data)
		}
	})
}

func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Add([]byte("<main><h1>Title</h1><section><h2>Part</h2><p>Words that are long enough for it.</p></section><form><input/name=x><select><button>"))
	f.Add([]byte("<body><b><p><b><input name=a><p><input aria-label='\"'><template><input></template><svg><![CDATA[<input>]]>"))
}
