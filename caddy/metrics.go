package caddy

import (
	"bytes"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// collector collects the metrics of a site, with its base URL as the label site.
type collector struct{ *site }

// register adds the metrics to those that Caddy's admin API serves.
func (s *site) register(to prometheus.Registerer) error { return to.Register(collector{s}) }

// Describe implements [prometheus.Collector]; the collector is unchecked.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c collector) Collect(to chan<- prometheus.Metric) {
	server := c.server.Load()
	if server == nil {
		return
	}
	var text bytes.Buffer
	parser := expfmt.NewTextParser(model.LegacyValidation)
	err := server.WriteMetrics(&text)
	families := map[string]*dto.MetricFamily{}
	if err == nil {
		families, err = parser.TextToMetricFamilies(&text)
	}
	if err != nil {
		to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			label := "site"
			m.Label = append(m.Label, &dto.LabelPair{Name: &label, Value: &c.base})
			slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
			to <- &metric{prometheus.NewDesc(name, f.GetHelp(), nil, nil), m}
		}
	}
}

// metric is a metric that was parsed from the text of the server.
type metric struct {
	desc *prometheus.Desc
	read *dto.Metric
}

// Desc implements [prometheus.Metric].
func (m *metric) Desc() *prometheus.Desc { return m.desc }

// Write implements [prometheus.Metric].
func (m *metric) Write(to *dto.Metric) error {
	to.Label, to.Counter, to.Gauge, to.Histogram = m.read.Label, m.read.Counter, m.read.Gauge, m.read.Histogram
	return nil
}
