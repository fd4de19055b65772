/** Describes the pieces that the parts of the page consist of: figures, cells, tables, times and charts. */
import { h } from './elements.js';
import { sparklineText } from './figures.js';
import {
  agoText,
  areaPoints,
  chartMaxOf,
  countText,
  rateText,
  spanText,
  sparklineHeight,
  sparklineWidth,
  timeText,
} from './format.js';

/** @typedef {import('./elements.js').Content} Content */
/** @typedef {import('./elements.js').Attributes} Attributes */
/** @typedef {import('./figures.js').Figure} Figure */

/** The style depends on the name of some figures. @param {string} name @param {Figure} figure */
export function figure(name, { text, state }) {
  return h('span', { 'data-figure': name, 'data-state': state }, text);
}

/** @param {string} label the heading of the column, shown in the cell on narrow screens @param {readonly Content[]} content */
export function cell(label, ...content) {
  return h('td', { 'data-label': label }, content);
}

/** A cell that shares its line with others on narrow screens. @param {string} label @param {readonly Content[]} content */
export function shortCell(label, ...content) {
  return h('td', { class: 'short', 'data-label': label }, content);
}

/** @param {string} label @param {string} name @param {Figure} figure */
export function numberCell(label, name, { text, state }) {
  return h('td', { class: 'number', 'data-label': label, 'data-figure': name, 'data-state': state }, text);
}

/** @param {readonly Content[]} content */
export function rowHeading(...content) {
  return h('th', { scope: 'row' }, content);
}

/** @param {string} title */
export function heading(title) {
  return h('th', { scope: 'col' }, title);
}

/** @param {string} title */
export function numberHeading(title) {
  return h('th', { scope: 'col', class: 'number' }, title);
}

/** @param {{ caption?: string, columns: Content, rows: Content, attributes?: Attributes }} parts */
export function table({ caption, columns, rows, attributes = {} }) {
  return h(
    'table',
    attributes,
    caption !== undefined && h('caption', {}, caption),
    h('thead', {}, h('tr', {}, columns)),
    h('tbody', {}, rows),
  );
}

/** @param {string} text */
export function hint(text) {
  return h('p', { class: 'hint' }, text);
}

/** @param {Content} content */
export function code(content) {
  return h('code', {}, content);
}

/** The name of a record, and below it the file and line where it is defined. @param {string} name @param {string | undefined} source */
export function origin(name, source) {
  const place = source === undefined ? 'built in' : code(breakable(source));
  return [h('span', { class: 'minor name' }, name), h('span', { class: 'minor place' }, place)];
}

/** `2 min ago`, with the exact time in the tooltip. @param {string} at @param {string} now both in RFC 3339 and UTC */
export function timeAgo(at, now) {
  const seconds = (Date.parse(now) - Date.parse(at)) / 1000;
  return h('time', { datetime: at, title: timeText(at) }, agoText(seconds));
}

/** A path in which lines can break after each slash. @param {string} path @returns {Content} */
export function breakable(path) {
  return path.split(/(?<=\/)/).map((step, index) => [index > 0 && h('wbr', {}), step]);
}

/** Says how many items are listed if not all are. @param {number} listed @param {number} total @param {string} what */
export function partialListNote(listed, total, what) {
  return listed < total && hint(`${countText(listed)} of ${countText(total)} ${what} are listed here.`);
}

/** The address of the page that explains a request. @param {string} method @param {string} url */
export function explanationOf(method, url) {
  return `../explain?${new URLSearchParams({ method, url })}`;
}

/** @typedef {Pick<import('../diagnostics.ts').RecentRow, 'requests' | 'errors' | 'slot_seconds'>} Counts */

/**
 * A chart of the requests and errors of the last minutes, with its scale and its time below.
 * @param {Counts | undefined} recent
 */
export function chart(recent = noCounts) {
  const { requests, slot_seconds } = recent;
  const span = spanText(requests.length * slot_seconds);
  const top = rateText(chartMaxOf(requests) / slot_seconds);
  const axis = requests.length > 0 && [`−${span}`, `0 to ${top}/s`, 'now'].map((text) => h('span', {}, text));
  return [sparkline(recent), h('div', { class: 'axis', 'aria-hidden': 'true' }, axis || 'no requests')];
}

/** @type {Counts} */
const noCounts = { requests: [], errors: [], slot_seconds: 5 };

/** @param {Counts} recent */
function sparkline(recent) {
  const chartMax = chartMaxOf(recent.requests);
  const area = (/** @type {'requests' | 'errors'} */ name) =>
    h('polygon', { class: name, points: areaPoints(recent[name], chartMax) });
  const attributes = {
    class: 'sparkline',
    viewBox: `0 0 ${sparklineWidth} ${sparklineHeight}`,
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': sparklineText(recent),
  };
  return h('svg', attributes, area('requests'), area('errors'));
}

/** Hidden from screen readers, because the text next to it says the same. @param {number} share @param {Figure} figure */
export function bar(share, { state }) {
  const width = String(Math.round(Math.min(share, 1) * 100));
  const attributes = {
    class: 'fullness-bar',
    viewBox: '0 0 100 10',
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  };
  return h(
    'svg',
    attributes,
    h('rect', { class: 'background', width: '100', height: '10' }),
    h('rect', { class: 'used', 'data-state': state, width, height: '10' }),
  );
}
