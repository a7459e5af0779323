// The heat strip: fill ratio of each filter, by column and row group. Of many row groups, one mark stands for several.

import { draw, make } from './elements.js'
import { formatInteger, formatPercent } from './format.js'

const MOST_MARKS = 2000
const MOST_COLUMNS = 200
/** Marks of a strip that have borders; more are too narrow. */
const MOST_BORDERED = 100
const LEVELS = 10

/** Draw a strip for each column with filters. Returns `{strips, note}`: elements, and a sentence on what one mark shows. */
export function drawStrips(file) {
  const byColumn = new Map()
  for (const filter of file.filters) {
    if (!byColumn.has(filter.column)) byColumn.set(filter.column, new Map())
    byColumn.get(filter.column).set(filter.rowGroup, filter)
  }
  const columns = [...byColumn.entries()].slice(0, MOST_COLUMNS)
  const most = Math.max(1, Math.floor(MOST_MARKS / Math.max(1, columns.length)))
  const perMark = Math.max(1, Math.ceil(file.rowGroups / most))
  const strips = columns.map(([column, filters]) => drawStrip(column, filters, file.rowGroups, perMark))
  const notes = []
  if (perMark > 1) notes.push(`One mark stands for ${formatInteger(perMark)} row groups, and shows the fullest filter.`)
  if (byColumn.size > columns.length) notes.push(`The first ${columns.length} of ${formatInteger(byColumn.size)} columns are shown.`)
  return { strips, note: notes.join(' ') }
}

function drawStrip(column, filters, rowGroups, perMark) {
  const count = Math.ceil(rowGroups / perMark)
  const marks = Array.from({ length: count }, (_, at) => {
    const [first, end] = [at * perMark, Math.min((at + 1) * perMark, rowGroups)]
    const members = Array.from({ length: end - first }, (_, more) => filters.get(first + more))
    const { className, text } = describe(members)
    const place = end - first === 1 ? `row group ${first}` : `row groups ${first} to ${end - 1}`
    return drawMark(className, at, `${column.name}, ${place}: ${text}`)
  })
  const name = `Fill ratio of ${column.name} by row group`
  const attributes = { viewBox: `0 0 ${count * 10} 10`, preserveAspectRatio: 'none', role: 'img', 'aria-label': name }
  const svg = draw('svg', { ...attributes, class: count > MOST_BORDERED ? 'dense' : 'sparse' }, ...marks)
  svg.style.maxWidth = `${count * 2.5}rem`
  return make('div', { class: 'strip' }, make('span', { class: 'label', title: column.name }, column.name), svg)
}

/** Return the class and the words of a mark for these filters; undefined is a row group without one. */
function describe(members) {
  const measured = members.filter(filter => filter?.fillRatio !== undefined)
  if (measured.length) {
    const fullest = measured.reduce((a, b) => (b.fillRatio > a.fillRatio ? b : a))
    const level = Math.min(LEVELS - 1, Math.floor(fullest.fillRatio * LEVELS))
    const text = `fill ratio ${formatPercent(fullest.fillRatio)}, estimated FPP ${formatPercent(fullest.estimatedFpp)}`
    return { className: `level-${level}`, text }
  }
  const filter = members.find(member => member)
  if (!filter) return { className: 'none', text: 'no filter' }
  return filter.reason ? { className: 'unusable', text: filter.reason } : { className: 'none', text: 'not measured' }
}

/** Draw the key of the strips' colours: swatches and words. */
export function drawKey() {
  const levels = Array.from({ length: LEVELS }, (_, at) => [`level-${at}`, `fill ratio from ${at * 10} % to ${(at + 1) * 10} %`])
  return [
    make('span', {}, '0 %'),
    drawSwatches('fill ratio from 0 % to 100 %', levels),
    make('span', {}, '100 %'),
    drawSwatches('no filter', [['none', 'no filter, or not measured']]),
    make('span', {}, 'no filter'),
    drawSwatches('unusable', [['unusable', 'a filter that cannot be used']]),
    make('span', {}, 'unusable'),
  ]
}

function drawSwatches(name, swatches) {
  const marks = swatches.map(([className, text], at) => drawMark(className, at, text))
  return draw('svg', { viewBox: `0 0 ${swatches.length * 10} 10`, role: 'img', 'aria-label': `Colours: ${name}` }, ...marks)
}

function drawMark(className, at, title) {
  return draw('rect', { class: `mark ${className}`, x: at * 10 + 0.5, y: 0.5, width: 9, height: 9 }, draw('title', {}, title))
}
