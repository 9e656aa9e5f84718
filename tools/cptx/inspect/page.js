/* SPDX-License-Identifier: MIT */
"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const colors = ["#d9822b", "#4c8dd6", "#7b61c9", "#8a9199", "#c94f7c", "#2e9e6b", "#17a2b8", "#b3261e", "#b0a06a", "#57b894", "#e0b400", "#5d6770"];
let K, rows = {}, byPtx = {}, bySass = {};

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

function hex(address) { return address.toString(16).padStart(4, "0"); }
function mnemonic(text) { return text.replace(/^@\S+ +/, "").split(/[ .;]/)[0]; }

function hottest() { return (K.loops || []).find(l => l.hottest); }

/* The most registers alive by line of the PTX: in the machine code, or, without a cubin, in the PTX itself. */
function aliveByLine() {
	const live = {}, from = K.alive ? K.sass.map(s => [s[1], s[4]]) : K.points || [];
	for (const [line, n] of from) if (line) live[line] = Math.max(live[line] || 0, n);
	return live;
}

/* A cell with a bar as long as its share of the most. */
function liveCell(e, n, most) {
	const l = el(e, "span", "live", n || "");
	l.style.backgroundSize = 100 * (n || 0) / most + "% 100%";
	l.title = "registers alive" + (K.alive ? " in the machine code" : ", estimated from the PTX");
}

function fillPtx(hot, live, most) {
	const unit = {}, banks = {};
	for (const p of K.points || []) unit[p[0]] = p[4], banks[p[0]] = p[5];
	const all = document.createDocumentFragment();
	D.ptx.forEach((text, i) => {
		const n = i + 1, isHot = hot && n >= hot.first && n <= hot.last;
		const e = row("ptx", n, text, unit[n] !== undefined || origin(n) ? group(n) : "p" + n, isHot);
		liveCell(e, live[n], most);
		el(e, "span", "unit").style.background = unit[n] === undefined ? "transparent" : colors[unit[n]];
		el(e, "span", "", text.replace(/\t/g, "    "));
		if (banks[n]) el(e, "span", "banks", "  +" + banks[n] + " turns for bank conflicts");
		byPtx[n] = e;
		all.appendChild(e);
	});
	$("ptx").replaceChildren(all);
}

function fillSass(hot, most) {
	const all = document.createDocumentFragment(), at = {};
	for (const s of K.sass) at[s[0]] = s;
	for (const [address, line, unit, text, live, stall, waits] of K.sass) {
		const e = row("sass", hex(address), text, line ? group(line) : "", hot && line >= hot.first && line <= hot.last);
		liveCell(e, live, most);
		el(e, "span", "stall" + (stall > 8 ? " long" : ""), stall || "").title = "cycles until the next instruction may be issued";
		el(e, "span", "unit").style.background = text ? colors[unit] : "transparent";
		el(e, "span", "", text || "(no disassembler)");
		if (waits.length) el(e, "span", "waits", "waits for " + waits.map(a => hex(a) + " " + mnemonic(at[a][3])).join(", "));
		bySass[address] = e;
		all.appendChild(e);
	}
	$("sass").replaceChildren(all);
	$("sass").parentNode.classList.toggle("none", !K.sass.length);
}

function fillSource(hot, live, most) {
	const all = document.createDocumentFragment(), hotLines = new Set(), alive = {};
	D.origin.forEach((o, i) => { if (o) alive[o.join(":")] = Math.max(alive[o.join(":")] || 0, live[i + 1] || 0); });
	for (let n = hot ? hot.first : 1; hot && n <= hot.last; n++)
		if (origin(n)) hotLines.add(origin(n).join(":"));
	D.sources.forEach((s, f) => {
		const used = new Set(D.origin.filter(o => o && o[0] === f).map(o => o[1]));
		el(all, "div", "row plain").appendChild(Object.assign(document.createElement("b"), { textContent: s.name + (s.lines.length ? "" : " (not read: only files beside the PTX are, and with --sources others)") }));
		const lines = s.lines.length ? s.lines : [];
		for (let i = 0; i < (lines.length || Math.max(0, ...used)); i++) {
			if (!lines.length && !used.has(i + 1)) continue;
			const e = row("source", i + 1, lines[i] || "", used.has(i + 1) ? "s" + f + ":" + (i + 1) : "", hotLines.has(f + ":" + (i + 1)));
			liveCell(e, alive[f + ":" + (i + 1)], most);
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
	card("shared memory", K.static_smem + " B", K.dynamic_smem ? "+ " + K.dynamic_smem + " B dynamic" :
		!K.dynamic_smem_given && (K.shared || []).some(v => !v.size) ? "static; dynamic: see --smem" : "static");
	if (o)
		card("occupancy", o.warps + " of " + o.most_warps + " warps", o.ctas + (o.ctas === 1 ? " CTA of " : " CTAs of ") + K.threads + " threads; limited by " + o.limit);
	if (K.shared_accesses)
		card("bank conflicts", K.conflicts + (K.conflicts === 1 ? " turn" : " turns"),
			"in " + K.points.filter(p => p[5]).length + " accesses; " + K.conflicts_known + " of " + K.shared_accesses + " are known", K.conflicts ? "bad" : "");
	if (K.code)
		card("machine code", K.code / 16 + " instructions", K.code + " B");
	if (hot) {
		const tensor = K.points.filter(p => p[4] === 0 && p[0] >= hot.first && p[0] <= hot.last).length;
		const e = card("hottest loop", place(hot.first), "to PTX line " + hot.last + ", depth " + hot.depth + ", " + tensor + " tensor instructions", "hot");
		e.id = "hottest";
		e.onclick = () => { select(group(hot.first)); byPtx[hot.first].scrollIntoView({ block: "start" }); };
	}
}

function fillPressure(hot, live, most) {
	const svg = $("pressure"), n = D.ptx.length || 1, lines = Object.keys(live).map(Number).sort((a, b) => a - b);
	svg.setAttribute("viewBox", "0 0 " + n + " 100");
	let path = "M0 100", at = 0;
	for (const l of lines) path += "L" + l + " " + (100 - 96 * live[l] / most), at = l;
	let s = `<path d="${path}L${at} 100Z" style="fill:var(--mark);stroke:var(--accent);stroke-width:1" vector-effect="non-scaling-stroke"/>`;
	if (hot) s += `<rect x="${hot.first}" y="0" width="${hot.last - hot.first + 1}" height="100" style="fill:var(--hotline);opacity:.35"/>`;
	svg.innerHTML = s;
	svg.onclick = e => {
		const line = Math.ceil(e.offsetX / svg.clientWidth * n);
		if (byPtx[line]) byPtx[line].scrollIntoView({ block: "center" }), select(group(line), "ptx");
	};
	$("peak").textContent = (K.alive ? "at most " + K.alive + " in the machine code, which takes " + K.registers : "at most " + (K.peak || 0) + ", an estimate from the PTX" +
		(K.alive_unknown ? " (" + K.alive_unknown + ")" : "")) + "; orange: the hottest loop";
}

/* Of each instruction the cycles that it says, upwards, and what it waits for, as a line of full height. */
function fillStalls(hot) {
	const svg = $("stalls"), code = K.sass, n = code.length || 1, none = !code.some(s => s[5]);
	let stall = "", wait = "", marks = "", cycles = 0, waits = 0, from = -1;
	code.forEach((s, i) => {
		const isHot = hot && s[1] >= hot.first && s[1] <= hot.last;
		if (isHot && from < 0) from = i;
		if (from >= 0 && (!isHot || i === n - 1)) marks += `<rect x="${from}" y="0" width="${i - from + 1}" height="100" style="fill:var(--hotline);opacity:.35"/>`, from = -1;
		if (s[5]) stall += `M${i + .5} 100V${100 - 6 * s[5]}`;
		if (s[6].length) wait += `M${i + .5} 0V100`, waits++;
		cycles += s[5];
	});
	svg.setAttribute("viewBox", "0 0 " + n + " 100");
	svg.innerHTML = `<path d="${wait}" style="stroke:var(--bad);stroke-width:1;opacity:.55" vector-effect="non-scaling-stroke"/><path d="${stall}" style="stroke:var(--accent);stroke-width:1"/>` + marks;
	svg.onclick = e => {
		const s = code[Math.floor(e.offsetX / svg.clientWidth * n)];
		if (s) bySass[s[0]].scrollIntoView({ block: "center" }), s[1] && select(group(s[1]), "sass");
	};
	svg.style.display = $("stallsof").style.display = none ? "none" : "";
	$("stallsmost").textContent = "blue: cycles that an instruction holds the next one (" + cycles + " in all); red: it waits for results (" + waits + "); not measured";
}

/* Where copies write, in the order of the offset: a part for each, to the next one or the end of the stage. */
function stageParts(v, i) {
	const copies = new Map();
	for (const u of K.stages) if (u.role === "copy" && u.buffer === i) copies.set(u.offset, u);
	const list = [...copies.values()].sort((a, b) => a.offset - b.offset), parts = [];
	list.forEach((u, j) => {
		const next = list[j + 1] ? list[j + 1].offset : u.stride ? list[0].offset + u.stride : u.offset + u.count;
		const n = u.set >= 0 && u.stride ? K.barriers_at[u.set].n || 1 : 1;
		for (let k = 0; k < n; k++)
			parts.push({ at: u.offset + k * u.stride, n: Math.max(0, next - u.offset), what: j, stage: k, of: n });
	});
	return parts.filter(p => p.n).sort((a, b) => a.at - b.at);
}

function fillSmem() {
	$("smem").replaceChildren();
	const shared = K.shared || [];
	shared.forEach((v, i) => {
		const parts = stageParts(v, i), sets = (K.barriers_at || []).filter(b => b.shared === i);
		for (const b of sets)
			for (let k = 0; k < b.n; k++) parts.push({ at: b.offset + 8 * k, n: 8, name: "mbarrier of stage " + k, color: colors[(K.barriers_at.indexOf(b) + 5) % 12] });
		parts.sort((a, b) => a.at - b.at);
		const line = el($("smem"), "div", "part"), end = Math.max(v.size || K.dynamic_smem || 0, ...parts.map(p => p.at + p.n));
		el(line, "span", "", v.name + ", " + (v.size || K.dynamic_smem || (end ? "at least " + end : "?")) + " B").title = "aligned to " + v.align;
		const b = el(line, "div", "bar");
		let at = 0;
		const segment = (n, color, title, text) => {
			const e = el(b, "i", "", text);
			e.style.cssText = `width:${100 * n / end}%;background:${color}`;
			e.title = title;
		};
		for (const p of parts) {
			if (p.at > at) segment(p.at - at, "transparent", at + " to " + (p.at - 1));
			if (p.at >= at) segment(p.n, p.color || colors[(p.what + 1) % 12], p.at + " to " + (p.at + p.n - 1) + ": " + (p.name || "copy " + (p.what + 1) + " of stage " + p.stage), p.name ? "" : String(p.stage)), at = p.at + p.n;
		}
		if (!parts.length && end) segment(end, colors[(i + 1) % 12], "0 to " + (end - 1));
	});
	const rings = shared.some((v, i) => stageParts(v, i).length);
	$("smemof").textContent = shared.length ? (rings ? "numbers: stages that copies fill, by the text" : "") : "none is named";
}

function fillStages() {
	const sets = K.barriers_at || [], verbs = { arrive: "arrivals", expect: "expects", copy: "copies", commit: "commits", wait: "waits" };
	$("pipeline").style.display = sets.length ? "" : "none";
	$("stages").replaceChildren();
	$("stagesof").textContent = sets.length + " sets of mbarriers, and the lines that use them";
	sets.forEach((b, i) => {
		const e = el($("stages"), "div", "ring");
		e.style.borderColor = colors[(i + 5) % 12];
		el(e, "b", "", K.shared[b.shared].name + "+" + b.offset);
		e.append(" " + (b.n ? b.n + (b.n > 1 ? " stages" : " stage") : "set up in a loop") + (b.arrivals ? ", " + b.arrivals + (b.arrivals > 1 ? " arrivals each" : " arrival each") : ""));
		for (const role in verbs) {
			const uses = K.stages.filter(u => u.set === i && u.role === role);
			if (!uses.length) continue;
			e.append("; " + verbs[role] + (role !== "expect" ? "" : uses[0].count ? " " + uses[0].count + " B" : " as many bytes as the kernel counts") + " in ");
			uses.forEach((u, j) => {
				if (j) e.append(", ");
				el(e, "a", "", u.line && place(u.line).replace(", PTX line ", "/")).onclick = () => { select(group(u.line)); byPtx[u.line].scrollIntoView({ block: "center" }); };
			});
		}
	});
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
	rows = { source: {}, ptx: {}, sass: {} }, byPtx = {}, bySass = {};
	const hot = hottest();
	const live = aliveByLine(), most = Math.max(1, K.alive || K.peak || 0);
	fillCards(hot), fillPressure(hot, live, most), fillStalls(hot), fillBars(), fillSmem(), fillStages(), fillRemarks();
	fillSource(hot, live, most), fillPtx(hot, live, most), fillSass(hot, most);
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
$("note").textContent = (D.note ? D.note + ". " : "") + "The hottest loop, units, stages and stalls are by the text and the code, not measured.";
if (D.kernels.length) show();
document.body.dataset.ready = Math.round(performance.now()) + " ms";
