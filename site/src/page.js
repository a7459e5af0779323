// The page: takes a file or a URL, shows the filters, and queries them for a value.

import { byId, make } from './elements.js'
import { formatCount, formatInteger, formatPercent, formatSize } from './format.js'
import { UnreadableError } from './header.js'
import { expects, ValueError } from './literals.js'
import { ParquetFile } from './parquet-file.js'
import { drawKey, drawStrips } from './picture.js'
import { FileSource, SourceError, UrlSource } from './sources.js'

const ROWS_AT_ONCE = 200
const MOST_ANSWERS = 400
/** Row groups that the sentence of an answer names. */
const MOST_NAMED = 12
/** Bitsets up to this size are measured at once; larger ones when the user wants it. */
const MEASURE_BYTES = 64 << 20

const NONE = 'The file has no Bloom filters. The command sbbf add-filter adds them.'
const LOCKED = 'The columns that are not encrypted have no Bloom filters. Where the others have them is encrypted.'

let file
let rowsShown = ROWS_AT_ONCE
/** Numbers of the last file that was chosen, and of the last query: what belongs to an earlier one is not shown. */
let generation = 0
let queries = 0

/** Set the message of the page, which screen readers announce. `state` is `busy`, `done` or `failed`. */
function announce(text, state) {
  const status = byId('status')
  status.textContent = text
  status.dataset.state = state
}

function explain(error, name) {
  if (error instanceof SourceError) return `${name}: ${error.message}`
  if (error instanceof UnreadableError) return `${name}: ${error.message}.`
  return `${name}: the page failed (${error.message}).`
}

/** Open what `makeSource` returns, and show it. */
async function open(name, makeSource) {
  const mine = ++generation
  file = undefined
  byId('contents').hidden = true
  clearAnswer()
  announce(`Reading ${name} …`, 'busy')
  try {
    const opened = await ParquetFile.open(await makeSource())
    if (mine !== generation) return
    file = opened
    rowsShown = ROWS_AT_ONCE
    showFile()
    if (file.bitsetBytes <= MEASURE_BYTES) await measure(mine)
    else announce(`${name}: the filters have ${formatSize(file.bitsetBytes)}, which were not read yet.`, 'done')
  } catch (error) {
    if (mine === generation) announce(explain(error, name), 'failed')
  }
}

async function measure(mine = generation) {
  const measured = file
  byId('measure').hidden = true
  let count = 0
  await measured.measure(() => {
    if (mine !== generation) throw new SourceError('Another file was chosen.')
    if (++count % 100 === 0) announce(`Reading filters: ${formatInteger(count)} …`, 'busy')
  })
  if (mine !== generation) return
  showFilters()
  const filters = measured.filters.filter(isInFooter).length
  announce(`${measured.source.name}: ${filters ? formatCount(filters, 'filter') : 'no filters'}.`, 'done')
}

/** Return whether the footer states where a filter is; for encrypted columns, it may not. */
function isInFooter(filter) {
  return filter.offset > 0
}

function showFile() {
  const encrypted = file.filters.filter(filter => !isInFooter(filter)).length
  const facts = [
    ['File', file.source.name],
    ['Size', `${formatSize(file.source.size)} (${formatCount(file.source.size, 'byte')})`],
    ['Footer', formatCount(file.footerBytes, 'byte')],
    ['Written by', file.createdBy || 'not stated'],
    ['Rows', formatInteger(file.rows ?? 0)],
    ['Row groups', formatInteger(file.rowGroups)],
    ['Columns', formatInteger(file.columns.length)],
  ]
  byId('no-filters').textContent = encrypted ? LOCKED : NONE
  if (encrypted) facts.push(['Encrypted', `${formatCount(encrypted, 'column chunk')} without metadata that can be read`])
  facts.push(['Read so far', ''])
  byId('facts').replaceChildren(...facts.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]))
  byId('facts').lastElementChild.id = 'bytes-read'
  const withFilter = new Set(file.filters.map(filter => filter.column))
  byId('column').replaceChildren(
    ...file.columns.map(column => {
      const suffix = withFilter.has(column) ? '' : ', no filter'
      return make('option', { value: column.index }, `${column.name} (${column.typeName})${suffix}`)
    }),
  )
  const first = file.columns.find(column => withFilter.has(column))
  if (first) byId('column').value = String(first.index)
  byId('value').value = ''
  showHint()
  byId('measure').hidden = file.bitsetBytes <= MEASURE_BYTES
  byId('contents').hidden = false
  showFilters()
}

function showFilters() {
  showBytesRead()
  const filters = file.filters.filter(isInFooter)
  const { strips, note } = drawStrips(file)
  byId('strips').replaceChildren(...strips)
  byId('strips-note').textContent = note
  byId('key').replaceChildren(...drawKey())
  byId('pictures').hidden = !filters.length
  byId('no-filters').hidden = filters.length > 0
  byId('rows').replaceChildren(...filters.slice(0, rowsShown).map(filterRow))
  byId('table').hidden = !filters.length
  byId('more').hidden = filters.length <= rowsShown
  const shown = formatInteger(Math.min(rowsShown, filters.length))
  byId('more').textContent = `Show more: ${shown} of ${formatCount(filters.length, 'filter')} are shown`
}

function filterRow(filter) {
  const number = (value, text) => make('td', { class: 'number' }, value === undefined ? '' : make('data', { value }, text))
  return make(
    'tr',
    {},
    make('td', { class: 'number' }, make('data', { value: filter.rowGroup }, formatInteger(filter.rowGroup))),
    make('th', { scope: 'row' }, filter.column.name),
    make('td', {}, filter.column.typeName),
    number(filter.offset, formatInteger(filter.offset)),
    number(filter.bytes, formatInteger(filter.bytes ?? 0)),
    number(filter.fillRatio, formatPercent(filter.fillRatio ?? 0)),
    number(filter.estimatedFpp, formatPercent(filter.estimatedFpp ?? 0)),
    make('td', { class: 'reason' }, filter.reason ?? ''),
  )
}

function chosenColumn() {
  return file.columns[Number(byId('column').value)]
}

function showHint() {
  const column = chosenColumn()
  const taken = column && expects(column)
  byId('hint').textContent = taken ? `It takes ${taken}.` : 'Filters of this column never answer.'
}

async function probe(event) {
  event.preventDefault()
  const box = byId('answer')
  if (!file?.columns.length) return
  const [mine, queried, column, text] = [++queries, file, chosenColumn(), byId('value').value]
  box.dataset.state = 'busy'
  let contents, state
  try {
    contents = describeAnswer(await queried.probe(column, text), column, text)
    state = 'done'
  } catch (error) {
    contents = [make('p', { class: 'failure' }, error instanceof ValueError ? error.message : explain(error, queried.source.name))]
    state = 'failed'
  }
  if (mine !== queries) return
  box.replaceChildren(...contents)
  showBytesRead()
  box.dataset.state = state
}

function clearAnswer() {
  queries++
  byId('answer').replaceChildren()
}

function showBytesRead() {
  byId('bytes-read').textContent = `${formatCount(file.source.bytesRead, 'byte')} in ${formatCount(file.source.reads, 'read')}`
}

/** Return the elements that show the answers: one sentence, and a table by row group. */
function describeAnswer({ answers, note, isAbsent }, column, text) {
  const open = answers.filter(({ answer }) => answer !== 'absent')
  const all = formatCount(answers.length, 'row group')
  const places = open.length <= MOST_NAMED ? `: ${open.map(({ rowGroup }) => formatInteger(rowGroup)).join(', ')}` : ''
  const sentence = isAbsent
    ? `Absent: the value is in none of ${all}.`
    : `Not excluded: the value may be in ${formatInteger(open.length)} of ${all}${places}.`
  // Of many row groups, those that may hold the value come first.
  const ordered = answers.length <= MOST_ANSWERS ? answers : [...open, ...answers.filter(({ answer }) => answer === 'absent')]
  const shown = ordered.slice(0, MOST_ANSWERS)
  const rows = shown.map(({ rowGroup, answer, reason }) =>
    make(
      'tr',
      { 'data-answer': answer },
      make('th', { scope: 'row', class: 'number' }, formatInteger(rowGroup)),
      make('td', {}, make('span', { class: `verdict ${answer.replace(' ', '-')}` }, answer)),
      make('td', { class: 'reason' }, reason ?? ''),
    ),
  )
  const names = [['Row group', 'number'], ['Answer', 'word'], ['Reason', 'word']]
  const head = make('tr', {}, ...names.map(([name, kind]) => make('th', { scope: 'col', class: kind }, name)))
  const table = make('table', {}, make('caption', {}, 'Answers by row group'), make('thead', {}, head), make('tbody', {}, ...rows))
  return [
    make('p', { class: `summary ${isAbsent ? 'absent' : 'open'}` }, sentence),
    make('p', {}, 'Column ', make('code', {}, column.name), ', value ', make('code', {}, text || '(empty)'), note ? `: ${note}.` : '.'),
    ...(rows.length ? [make('div', { class: 'frame', tabindex: 0, role: 'region', 'aria-label': 'Answers by row group' }, table)] : []),
    ...(shown.length < answers.length ? [make('p', {}, `${shown.length} of ${all} are shown.`)] : []),
  ]
}

function takeFile(chosen) {
  if (chosen) open(chosen.name, async () => new FileSource(chosen))
}

function takeFiles() {
  byId('file').addEventListener('change', event => takeFile(event.target.files[0]))
  const zone = byId('drop')
  for (const kind of ['dragover', 'dragleave', 'drop']) {
    document.addEventListener(kind, event => {
      event.preventDefault()
      zone.classList.toggle('over', kind === 'dragover')
    })
  }
  document.addEventListener('drop', event => takeFile(event.dataTransfer?.files[0]))
}

function takeUrls() {
  byId('url-form').addEventListener('submit', event => {
    event.preventDefault()
    const url = byId('url').value.trim()
    if (/^https?:\/\//i.test(url)) open(url, () => UrlSource.open(url))
    else announce('The URL must begin with https:// or http://.', 'failed')
  })
}

function start() {
  if (byId('file')) takeFiles()
  else takeUrls()
  byId('probe').addEventListener('submit', probe)
  byId('column').addEventListener('change', showHint)
  for (const id of ['column', 'value']) byId(id).addEventListener('input', clearAnswer)
  byId('value').addEventListener('keydown', event => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault()
      byId('probe').requestSubmit()
    }
  })
  byId('measure').addEventListener('click', () => measure().catch(error => announce(explain(error, file.source.name), 'failed')))
  byId('more').addEventListener('click', () => {
    rowsShown += ROWS_AT_ONCE
    showFilters()
  })
  announce('No file is open.', 'done')
}

start()
