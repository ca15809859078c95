package extract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// mediaOf extracts a page with JSON-LD and some HTML, and returns its video and audio blocks.
func mediaOf(t *testing.T, jsonLD, body string) (out []millrace.Block) {
	t.Helper()
	html := `<!DOCTYPE html><html lang="en"><title>The wheel</title><script type="application/ld+json">` + jsonLD + `</script>
<main><h1>The wheel</h1><p>` + strings.Repeat("Twelve buckets of oak carry the water down, and the stone above them turns. ", 5) + `</p>` + body + `</main></html>`
	res, err := HTML(t.Context(), []byte(html), "https://mill.example/wheel/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range res.Page.Blocks {
		switch b.Type {
		case millrace.VideoBlock, millrace.AudioBlock, millrace.EmbedBlock:
			out = append(out, b)
		}
	}
	return out
}

const film = `{"@context":"https://schema.org","@type":"VideoObject","name":"It turns","description":"Twelve buckets.","contentUrl":"/wheel.mp4",
"embedUrl":"https://player.example/1","thumbnailUrl":["/wheel.jpg"],"duration":"P0DT0H5M20S","width":1280,"height":{"@type":"QuantitativeValue","value":"720"},
"encodingFormat":"video/mp4","author":{"@type":"Person","name":"Ada Miller"},"transcript":"Water runs.\n\nIt turns &amp; turns.",
"hasPart":[{"@type":"Clip","name":"Start","startOffset":0},{"@type":"Clip","name":"Full speed","startOffset":"61"},{"@type":"Clip","startOffset":9}]}`

func TestMediaOfSchema(t *testing.T) {
	more := &millrace.Media{
		Duration: "PT5M20S", Width: 1280, Height: 720, Creator: "Ada Miller", Transcript: "Water runs.\n\nIt turns & turns.",
		Chapters: []millrace.Chapter{{Title: "Start"}, {Time: 61, Title: "Full speed"}},
	}
	sources := []millrace.MediaSource{{URL: "https://mill.example/wheel.mp4"}, {URL: "https://player.example/1", Type: "text/html"}}
	for _, c := range []struct {
		name, jsonLD, body string
		want               []millrace.Block
	}{
		{"an element has more to it", film, `<video src="/wheel.mp4"><track src="/en.vtt" kind="captions" srclang="en" label="English"></video>`, []millrace.Block{{
			Type: millrace.VideoBlock, URL: "https://mill.example/wheel.mp4", Title: "It turns", Caption: "Twelve buckets.", Poster: "https://mill.example/wheel.jpg",
			Sources: sources, Tracks: []millrace.Track{{URL: "https://mill.example/en.vtt", Kind: "captions", Language: "en", Label: "English"}}, Media: more,
		}}},
		{"what scripts would show", film, "", []millrace.Block{{
			Type: millrace.VideoBlock, URL: "https://mill.example/wheel.mp4", Title: "It turns", Poster: "https://mill.example/wheel.jpg", Sources: sources, Media: more,
		}}},
		{
			"a frame of a large host", `{"@type":"Article","video":{"@type":"VideoObject","name":"The wheel","embedUrl":"https://www.youtube.com/watch?v=abcdefghijk","duration":"pt2m"}}`,
			`<iframe src="https://www.youtube-nocookie.com/embed/abcdefghijk?rel=0"></iframe>`,
			[]millrace.Block{{
				Type: millrace.VideoBlock, URL: "https://www.youtube-nocookie.com/embed/abcdefghijk?rel=0", Media: &millrace.Media{Duration: "PT2M"},
				Sources: []millrace.MediaSource{{URL: "https://www.youtube-nocookie.com/embed/abcdefghijk?rel=0", Type: "text/html"}, {URL: "https://www.youtube.com/watch?v=abcdefghijk", Type: "text/html"}},
			}},
		},
		{
			"an episode", `{"@graph":[{"@type":"PodcastEpisode","name":"Episode 1","associatedMedia":{"@type":"MediaObject","contentUrl":"x"},"audio":{"@type":"AudioObject","contentUrl":"https://pod.example/1.mp3"},"partOfSeries":{"@type":"PodcastSeries","name":"Mill talk"},"timeRequired":"PT1H"}]}`,
			`<audio controls><source src="https://pod.example/1.mp3" type="audio/mpeg"></audio>`,
			[]millrace.Block{{
				Type: millrace.AudioBlock, URL: "https://pod.example/1.mp3", Title: "Episode 1", Sources: []millrace.MediaSource{{URL: "https://pod.example/1.mp3", Type: "audio/mpeg"}},
				Media: &millrace.Media{Duration: "PT1H", Series: "Mill talk"},
			}},
		},
		{"nothing to show", `{"@type":"VideoObject","name":"x","contentUrl":"javascript:alert(1)"}`, "", nil},
		{"two of them, one shown", `[` + film + `,{"@type":"VideoObject","name":"Other","contentUrl":"https://mill.example/other.mp4"}]`, `<video src="/third.mp4"></video>`, []millrace.Block{
			{Type: millrace.VideoBlock, URL: "https://mill.example/wheel.mp4", Title: "It turns", Poster: "https://mill.example/wheel.jpg", Sources: sources, Media: more},
			{Type: millrace.VideoBlock, URL: "https://mill.example/other.mp4", Title: "Other"},
			{Type: millrace.VideoBlock, URL: "https://mill.example/third.mp4"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mediaOf(t, c.jsonLD, c.body)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	for in, want := range map[string]string{
		"PT5M20S": "PT5M20S", "P1DT1H": "PT25H", "PT90S": "PT1M30S", "PT0S": "", "P": "", "5:20": "", "PT1.5S": "PT1S", "PT3600.0S": "PT1H", "PT99999999999S": "",
	} {
		if got := duration(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
