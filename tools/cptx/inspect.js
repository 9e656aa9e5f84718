"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const colors = ["#d9822b", "#4c8dd6", "#7b61c9", "#8a9199", "#c94f7c", "#2e9e6b", "#17a2b8", "#b3261e", "#b0a06a", "#57b894", "#e0b400", "#5d6770"];
let K, rows = {}, byPtx = {};

function el(parent, tag, cls, text) {
	const e = document.createElement(tag);
	if (cls) e.className = cls;
	if (text !== undefined) e.textContent = text;
	parent.appendChild(e);
	return e;
}

function origin(line) { return D.origin[line - 1] || null; }
function place(line) {
	const o = origin(line);
	return (o ? D.sources[o[0]].name.replace(/.*\//, "") + ":" + o[1] + ", " : "") + "PTX line " + line;
}

/* Rows that belong together: all that come from one source line, or, without one, from one line of PTX. */
function group(line) {
	const o = origin(line);
	return o ? "s" + o[0] + ":" + o[1] : "p" + line;
}

function select(key, from) {
	for (const e of document.querySelectorAll(".row.on")) e.classList.remove("on");
	for (const pane of ["source", "ptx", "sass"]) {
		const list = (rows[pane] || {})[key] || [];
		for (const e of list) e.classList.add("on");
		if (list.length && pane !== from) {
			const p = $(pane);
			p.scrollTop = list[0].offsetTop - p.clientHeight / 3;
		}
	}
}

function row(pane, number, text, key, hot) {
	const e = document.createElement("div");
	e.className = "row" + (hot ? " hot" : "") + (key ? "" : " plain");
	el(e, "span", "", number);
	if (key) {
		(rows[pane][key] = rows[pane][key] || []).push(e);
		e.onclick = () => select(key, pane);
	}
	e.text = text.toLowerCase();
	return e;
}

function hottest() { return (K.loops || []).find(l => l.hottest); }

function fillPtx(hot, peak) {
	const live = {}, unit = {}, banks = {};
	for (const p of K.points || []) live[p[0]] = Math.max(live[p[0]] || 0, p[1]), unit[p[0]] = p[4], banks[p[0]] = p[5];
	const all = document.createDocumentFragment();
	D.ptx.forEach((text, i) => {
		const n = i + 1, isHot = hot && n >= hot.first && n <= hot.last;
		const e = row("ptx", n, text, live[n] !== undefined || origin(n) ? group(n) : "p" + n, isHot);
		const l = el(e, "span", "live", live[n] || "");
		l.style.backgroundSize = 100 * (live[n] || 0) / peak + "% 100%";
		el(e, "span", "unit").style.background = live[n] === undefined ? "transparent" : colors[unit[n]];
		el(e, "span", "", text.replace(/\t/g, "    "));
		if (banks[n]) el(e, "span", "banks", "  +" + banks[n] + " turns for bank conflicts");
		byPtx[n] = e;
		all.appendChild(e);
	});
	$("ptx").replaceChildren(all);
}

function fillSass(hot) {
	const all = document.createDocumentFragment();
	for (const [address, line, unit, text] of K.sass) {
		const e = row("sass", address.toString(16).padStart(4, "0"), text, line ? group(line) : "", hot && line >= hot.first && line <= hot.last);
		el(e, "span", "unit").style.background = text ? colors[unit] : "transparent";
		el(e, "span", "", text || "(no disassembler)");
		all.appendChild(e);
	}
	$("sass").replaceChildren(all);
	$("sass").parentNode.classList.toggle("none", !K.sass.length);
}

function fillSource(hot) {
	const all = document.createDocumentFragment(), hotLines = new Set();
	for (let n = hot ? hot.first : 1; hot && n <= hot.last; n++)
		if (origin(n)) hotLines.add(origin(n).join(":"));
	D.sources.forEach((s, f) => {
		const used = new Set(D.origin.filter(o => o && o[0] === f).map(o => o[1]));
		el(all, "div", "row plain").appendChild(Object.assign(document.createElement("b"), { textContent: s.name + (s.lines.length ? "" : " (cannot be read)") }));
		const lines = s.lines.length ? s.lines : [];
		for (let i = 0; i < (lines.length || Math.max(0, ...used)); i++) {
			if (!lines.length && !used.has(i + 1)) continue;
			const e = row("source", i + 1, lines[i] || "", used.has(i + 1) ? "s" + f + ":" + (i + 1) : "", hotLines.has(f + ":" + (i + 1)));
			el(e, "span", "", (lines[i] || "").replace(/\t/g, "    "));
			all.appendChild(e);
		}
	});
	$("source").replaceChildren(all);
	$("source").parentNode.classList.toggle("none", !D.sources.length);
}

function card(title, value, more, cls) {
	const e = el($("cards"), "div", "card " + (cls || ""));
	el(e, "small", "", title);
	el(e, "b", "", value);
	el(e, "small", "", more);
	return e;
}

function fillCards(hot) {
	$("cards").replaceChildren();
	const spills = (K.spill_stores || 0) + (K.spill_loads || 0), o = K.occupancy;
	card("registers per thread", K.registers + (K.measured ? "" : " ?"), K.measured ? "of 255" : "estimate");
	card("spills", K.spill_stores === undefined ? "?" : spills + " B", K.spill_stores === undefined ? "ptxas was not asked" : "stack frame " + K.frame + " B",
		spills ? "bad" : "");
	card("shared memory", K.static_smem + " B", K.dynamic_smem ? "+ " + K.dynamic_smem + " B dynamic" : "static");
	if (o)
		card("occupancy", o.warps + " of " + o.most_warps + " warps", o.ctas + " CTAs of " + K.threads + " threads; limited by " + o.limit);
	if (K.shared_accesses)
		card("bank conflicts", K.conflicts, "of " + K.conflicts_known + " of " + K.shared_accesses + " accesses, by the text", K.conflicts ? "bad" : "");
	if (K.code)
		card("machine code", K.code / 16 + " instructions", K.code + " B");
	if (hot) {
		const tensor = K.points.filter(p => p[4] === 0 && p[0] >= hot.first && p[0] <= hot.last).length;
		const e = card("hottest loop", place(hot.first), "to PTX line " + hot.last + ", depth " + hot.depth + ", " + tensor + " tensor instructions", "hot");
		e.id = "hottest";
		e.onclick = () => { select(group(hot.first)); byPtx[hot.first].scrollIntoView({ block: "start" }); };
	}
}

function fillPressure(hot) {
	const svg = $("pressure"), n = D.ptx.length || 1, peak = Math.max(1, K.peak || 0), points = K.points || [];
	svg.setAttribute("viewBox", "0 0 " + n + " 100");
	let path = "M0 100", at = 0;
	for (const p of points) path += "L" + p[0] + " " + (100 - 96 * p[1] / peak), at = p[0];
	let s = `<path d="${path}L${at} 100Z" style="fill:var(--mark);stroke:var(--accent);stroke-width:1" vector-effect="non-scaling-stroke"/>`;
	if (hot) s += `<rect x="${hot.first}" y="0" width="${hot.last - hot.first + 1}" height="100" style="fill:var(--hotline);opacity:.35"/>`;
	svg.innerHTML = s;
	svg.onclick = e => {
		const line = Math.ceil(e.offsetX / svg.clientWidth * n);
		if (byPtx[line]) byPtx[line].scrollIntoView({ block: "center" }), select(group(line), "ptx");
	};
	$("peak").textContent = points.length ? "at most " + K.peak + " of the PTX; ptxas needs " + K.registers + "; orange: the hottest loop" : "";
}

function bar(id, legend, parts, unit) {
	const all = parts.reduce((a, p) => a + p.n, 0) || 1;
	$(id).replaceChildren(), $(legend).replaceChildren();
	for (const p of parts.filter(q => q.n)) {
		const e = el($(id), "i");
		e.style.cssText = `width:${100 * p.n / all}%;background:${p.color}`;
		e.title = p.name + ": " + p.n;
		const l = el($(legend), "span");
		el(l, "span", "dot").style.background = p.color;
		l.append(p.name + " " + p.n + (unit || ""));
	}
}

function fillBars() {
	const counts = new Array(D.units.length).fill(0), machine = K.sass.some(s => s[3]);
	if (machine) for (const s of K.sass) if (s[3]) counts[s[2]]++;
	if (!machine && K.mix) D.units.forEach((u, i) => counts[i] = K.mix[u]);
	$("mixof").textContent = machine ? "of the machine code" : "of the PTX";
	bar("mix", "legend", D.units.map((u, i) => ({ name: u, n: counts[i], color: colors[i] })));
	const parts = D.shared.filter(s => s.size).map((s, i) => ({ name: s.name, n: s.size, color: colors[(i + 1) % 12] }));
	if (K.dynamic_smem) parts.push({ name: "dynamic", n: K.dynamic_smem, color: colors[0] });
	const barriers = D.ptx.filter(l => /\bmbarrier\.init/.test(l)).length, open = D.shared.filter(s => !s.size).map(s => s.name);
	$("smemof").textContent = (open.length && !K.dynamic_smem ? open.join(", ") + ": as large as the launch says; " : "") +
		(barriers ? barriers + " mbarriers set up" : "");
	bar("smem", "smemlegend", parts, " B");
}

function fillRemarks() {
	$("remarks").replaceChildren();
	for (const r of D.remarks) {
		const e = el($("remarks"), "div", r.severity);
		e.textContent = (r.ptx_line ? place(r.ptx_line) + ": " : "") + r.severity + ": " + r.text.replace(/\.$/, "") + (r.advice ? ". " + r.advice : "");
		e.onclick = () => r.ptx_line && select(group(r.ptx_line));
	}
}

function show() {
	K = D.kernels[$("kernel").value];
	rows = { source: {}, ptx: {}, sass: {} }, byPtx = {};
	const hot = hottest();
	fillCards(hot), fillPressure(hot), fillBars(), fillRemarks();
	fillSource(hot), fillPtx(hot, Math.max(1, K.peak || 0)), fillSass(hot);
	if (hot) {
		select(group(hot.first));
		byPtx[hot.first].scrollIntoView({ block: "start" });
	}
}

function find(words) {
	let n = 0, first = null;
	for (const e of document.querySelectorAll(".pane .row")) {
		const hit = words.length > 1 && (e.text || "").includes(words);
		e.classList.toggle("hit", hit);
		if (hit && !n++) first = e;
	}
	$("found").textContent = words.length > 1 ? n + " lines" : "";
	if (first) first.scrollIntoView({ block: "center" });
}

function theme(t) { document.documentElement.dataset.theme = t; }
theme(/dark/.test(location.hash) || (!/light/.test(location.hash) && matchMedia("(prefers-color-scheme: dark)").matches) ? "dark" : "light");
$("theme").onclick = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
$("find").oninput = e => find(e.target.value.toLowerCase());
document.querySelector("h1").textContent = D.file.replace(/.*\//, "") + " for " + D.target;
document.title = "cptx: " + D.file;
D.kernels.forEach((k, i) => el($("kernel"), "option", "", k.name).value = i);
$("note").textContent = (D.note ? D.note + ". " : "") + "The hottest loop and units are by the text, not measured.";
if (D.kernels.length) show();
document.body.dataset.ready = Math.round(performance.now()) + " ms";
