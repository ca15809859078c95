package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/webhook"
)

// eventExportFlags holds the flags for the export of events.
type eventExportFlags struct {
	EventsTo     []string `placeholder:"KIND=URL" sep:"none" help:"Send each request of a bot to a service: umami=URL?website=ID, plausible=URL?domain=NAME, ga4=URL?measurement_id=G-ID&api_secret=SECRET, or webhook=URL for signed JSON (default: none). May be given several times. Set URLs with secrets in the configuration file."`
	EventsSecret string   `placeholder:"KEY" help:"Secret that signs the webhook messages of --events-to: whsec_ and base64. A second secret, separated by a space, also signs them. Set it in the configuration file or in the environment." hidden:""`
}

// validate rejects targets without recorded events.
func (c *eventExportFlags) validate(recorded bool) error {
	targets, _, err := c.targets()
	if err == nil && len(targets) > 0 && !recorded {
		return usageError("--events-to: no events are recorded with --events 0; omit one of them")
	}
	return err
}

// targets parses the flags.
func (c *eventExportFlags) targets() ([]*analytics.Target, []webhook.Secret, error) {
	var out []*analytics.Target
	hooks, names := false, map[string]bool{}
	for _, text := range c.EventsTo {
		t, err := analytics.ParseTarget(strings.TrimSpace(text))
		if err != nil {
			return nil, nil, usageError("--events-to: " + err.Error())
		}
		if names[t.Name()] {
			return nil, nil, usageError(fmt.Sprintf("--events-to: duplicate %s", t))
		}
		names[t.Name()] = true
		hooks = hooks || t.Kind == analytics.Webhook
		out = append(out, t)
	}
	switch {
	case c.EventsSecret == "" && hooks:
		return nil, nil, usageError("--events-secret: webhooks of --events-to require a secret for signatures; create one with: (printf whsec_; openssl rand -base64 32)")
	case c.EventsSecret == "":
		return out, nil, nil
	case !hooks:
		return nil, nil, usageError("--events-secret: only valid with a webhook in --events-to")
	}
	secrets, err := webhook.ParseSecrets(strings.Join(strings.Fields(c.EventsSecret), "\n"))
	if err != nil {
		return nil, nil, usageError("--events-secret: " + err.Error())
	}
	return out, secrets, nil
}

// exporters returns the exporters of events.
func (s *service) exporters() (out []*analytics.Exporter, err error) {
	c, st := s.c, s.source.Store
	targets, secrets, err := c.targets()
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, t := range targets {
		name := t.String()
		if counts[name]++; counts[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, counts[name])
		}
		// Each exporter has its own client, so that it does not wait for the others.
		client := c.notificationClient(s.p)
		s.OnClose(func() error { client.CloseIdleConnections(); return nil })
		e, err := analytics.NewExporter(st.Usage(), st.State(), s.source.Name, t, client.HTTP(), &analytics.ExporterOptions{
			Name: name, Leases: st.Leases(), Base: s.source.Base, Secrets: secrets,
			UserAgent: cmp.Or(c.UserAgent, analytics.NeutralName+"/"+buildVersion()), Logger: s.p.log,
		})
		if err != nil {
			return nil, usageError("--events-to: " + err.Error())
		}
		out = append(out, e)
	}
	return out, nil
}
