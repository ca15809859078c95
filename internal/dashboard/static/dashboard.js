// Draws the tables of figures as interactive charts. Without this script, the
// page shows only the tables.
"use strict";

(() => {
	const path = document.currentScript.src;
	const figures = [...document.querySelectorAll("figure.chart")];
	if (figures.length === 0) return;
	const library = document.createElement("script");
	library.src = new URL("uplot", path).href;
	library.onload = () => figures.forEach(draw);
	document.head.append(library);

	const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
	function written(v, unit) {
		if (v == null) return "–";
		if (unit === "percent") return number.format(v) + " %";
		const step = ["", "k", "M", "G", "T", "P"];
		let i = 0;
		const short = unit === "bytes" ? 1000 : 100000;
		let w = v;
		while (Math.abs(w) >= (i === 0 ? short : 1000) && i < 5) { w /= 1000; i++; }
		return number.format(w) + (unit === "bytes" ? " " + step[i] + "B" : i ? " " + step[i] : "");
	}

	function element(name, className, text) {
		const e = document.createElement(name);
		if (className) e.className = className;
		if (text !== undefined) e.textContent = text;
		return e;
	}

	// Returns a color of the style sheet in the current theme.
	function color(className, property) {
		const e = element("i", className);
		e.hidden = true;
		document.body.append(e);
		const c = getComputedStyle(e)[property];
		e.remove();
		return c;
	}

	function draw(figure) {
		const unit = figure.dataset.unit, lines = "lines" in figure.dataset;
		const rows = [...figure.querySelectorAll("tbody tr")].reverse();
		if (rows.length < (lines ? 2 : 1)) return;
		const head = [...figure.querySelectorAll("thead th")].map((h) => h.textContent);
		const times = rows.map((r) => +r.querySelector("time").dataset.at);
		const labels = rows.map((r) => r.querySelector("time").textContent);
		const values = [...rows[0].querySelectorAll("data")].map((_, i) => rows.map((r) => +r.querySelectorAll("data")[i].value));
		const names = values.map((_, i) => head[i + 1]);
		const shown = names.map(() => true);
		const swatch = (i) => "s" + Math.min(i, 7);

		const details = figure.querySelector("details");
		details.open = false;
		const plot = figure.querySelector(".plot");
		plot.hidden = false;
		plot.tabIndex = 0;
		plot.setAttribute("role", "img");
		plot.setAttribute("aria-label", figure.querySelector("figcaption").textContent + ". The figures are in the table below; use the arrow keys to step through them.");
		const tip = element("div", "tip");
		tip.hidden = true;
		tip.setAttribute("aria-live", "polite");

		// Bars are stacked: the first visible series is at the bottom.
		function data() {
			if (lines) return [times, ...values];
			const sum = times.map(() => 0), stacked = [];
			values.forEach((v, i) => stacked.push(v.map((x, j) => shown[i] ? (sum[j] += x) : null)));
			return [times, ...stacked.reverse()];
		}
		const order = lines ? names.map((_, i) => i) : names.map((_, i) => names.length - 1 - i);
		const gap = times.length > 1 ? times[1] - times[0] : 86400;

		// Each day has a label, starting with the first, if there is enough space.
		const day = uPlot.fmtDate("{D} {MMM}");
		function days() {
			const step = Math.ceil(times.length * 56 / Math.max(1, plot.clientWidth - 86));
			return {
				splits: () => times.filter((_, i) => i % step === 0),
				values: (_, ticks) => ticks.map((t) => day(uPlot.tzDate(new Date(t * 1000), "Etc/UTC"))),
				size: 28,
			};
		}

		let chart;
		function make() {
			const text = color("axis-text", "color"), grid = { stroke: color("grid-line", "color"), width: 1 };
			const bars = uPlot.paths.bars({ size: [0.78, 60], radius: 0 });
			const axis = { stroke: text, grid, ticks: { show: false }, font: "12px system-ui, sans-serif", gap: 6 };
			const options = {
				width: Math.max(200, plot.clientWidth), height: plot.clientWidth < 500 ? 210 : 260, padding: [8, 24, 0, 0],
				legend: { show: false }, tzDate: (t) => uPlot.tzDate(new Date(t * 1000), "Etc/UTC"),
				cursor: { points: { show: lines }, drag: { x: false, y: false }, y: false },
				scales: { x: { time: true, range: () => [times[0] - gap / 2, times.at(-1) + gap / 2] }, y: { range: (_, min, max) => [0, Math.max(max, unit === "percent" ? 1 : 4) * 1.06] } },
				axes: [{ ...axis, grid: { show: false }, space: 64, size: (_, ticks) => ticks && ticks.some((t) => t && t.includes("\n")) ? 42 : 28, values: [
					[86400 * 365, "{YYYY}", null, null, null, null, null, null, 1],
					[86400 * 28, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
					[86400, "{D} {MMM}", null, null, null, null, null, null, 1],
					[3600, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
					[60, "{HH}:{mm}", null, null, null, null, null, null, 1],
				], ...(gap === 86400 ? days() : {}) }, { ...axis, size: 62, values: (_, ticks) => ticks.map((t) => unit === "count" && t % 1 ? "" : written(t, unit)) }],
				series: [{}, ...order.map((i) => {
					const c = color("swatch " + swatch(i), "backgroundColor");
					return { label: names[i], stroke: c, width: lines ? 2 : 0, fill: lines ? undefined : c, paths: lines ? undefined : bars, points: { show: false }, show: shown[i] };
				})],
				hooks: { setCursor: [point] },
			};
			if (chart) chart.destroy();
			chart = new uPlot(options, data(), plot);
			chart.over.append(tip);
		}

		function point(u) {
			const at = u.cursor.idx;
			if (at == null || u.cursor.left < 0) { tip.hidden = true; return; }
			tip.replaceChildren(element("b", "", labels[at]));
			let all = 0, several = 0;
			names.forEach((n, i) => {
				if (!shown[i] || !values[i][at] && names.length > 3) return;
				const line = element("div");
				line.append(element("span", "swatch " + swatch(i)), element("span", "", n), element("span", "", written(values[i][at], unit)));
				tip.append(line);
				all += values[i][at]; several++;
			});
			if (!lines && several !== 1) {
				const line = element("div", "all");
				line.append(element("span", "", "Total"), element("span", "", written(all, unit)));
				tip.append(line);
			}
			tip.hidden = false;
			const left = u.valToPos(times[at], "x"), room = u.over.clientWidth;
			const x = left + tip.offsetWidth + 20 > room ? Math.max(0, left - tip.offsetWidth - 12) : left + 12;
			tip.style.transform = "translate(" + Math.round(x) + "px, 4px)";
		}

		if (names.length > 1) {
			const legend = element("ul", "legend");
			names.forEach((n, i) => {
				const b = element("button");
				b.type = "button";
				b.setAttribute("aria-pressed", "true");
				b.append(element("span", "swatch " + swatch(i)), element("span", "", n));
				b.addEventListener("click", () => {
					shown[i] = !shown[i];
					b.setAttribute("aria-pressed", String(shown[i]));
					make();
				});
				const item = element("li");
				item.append(b);
				legend.append(item);
			});
			plot.before(legend);
		}
		make();

		plot.addEventListener("keydown", (e) => {
			const last = times.length - 1, now = chart.cursor.left >= 0 ? chart.cursor.idx : null;
			const to = { ArrowLeft: now == null ? last : Math.max(0, now - 1), ArrowRight: now == null ? 0 : Math.min(last, now + 1), Home: 0, End: last }[e.key];
			if (to === undefined) {
				if (e.key === "Escape") chart.setCursor({ left: -10, top: -10 });
				return;
			}
			e.preventDefault();
			chart.setCursor({ left: chart.valToPos(times[to], "x"), top: 10 });
		});
		plot.addEventListener("blur", () => chart.setCursor({ left: -10, top: -10 }));
		let width = plot.clientWidth;
		new ResizeObserver(() => {
			if (plot.clientWidth !== width) { width = plot.clientWidth; make(); }
		}).observe(plot);
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", make);
	}
})();
