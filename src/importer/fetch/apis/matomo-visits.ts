// Matomo's `Live.getLastVisitsDetails`, by completed days, in pages. Paging by offset over a changing list loses and
// repeats visits, so the received visits are compared with Matomo's own count. Source: docs/wire/import.md §1.6.

import { isJsonObject, type JsonValue, ownValue, parseJson, textOf } from '#core/json.ts'
import { BrokenAnswer, FetchStop, FetchWait } from '#importer/fetch/fetch-faults.ts'
import { redactSecrets } from '#importer/fetch/fetch-secrets.ts'
import type { FetchPart, FetchSource, PartOutcome, PartTools } from '#importer/fetch/fetch-source.ts'
import { type DayWindow, divideIntoWindows } from '#importer/fetch/fetch-windows.ts'
import { createStatusFault, readBody, sendRequest } from '#importer/fetch/http-request.ts'
import { splitJsonList } from './json-list-elements.ts'
import { writeLines } from './lines-file.ts'

/** A visit may extend half an hour into the next day. */
export const matomoReadyMs = 3_600_000

export interface MatomoVisits {
  /** The address of the installation; `index.php` is below it. */
  readonly host: URL
  readonly siteId: string
  /** Days in the zone of the site. */
  readonly range: DayWindow
  readonly token: string
}

/** Visits per call. Matomo advises 10,000, which can take gigabytes for visits with many actions. */
const pageVisits = { first: 1_000, min: 10 }
const pageBytesMax = 256 * 2 ** 20

export function createMatomoSource(options: MatomoVisits): FetchSource {
  /** By part id: how many visits the last try received, if Matomo's count differed. */
  const differed = new Map<string, number>()
  return {
    limits: { perSecond: 5, perHour: null, atOnce: 1 },
    advice: 'Raise the memory limit of PHP and the time that the web server allows.',
    callsPerPart: 3,
    notes: ['A day of more than 1,000 visits takes a call more for every 1,000.'],
    listParts: () =>
      divideIntoWindows(options.range, 1).map(({ from }) => ({
        id: `matomo-${encodeURIComponent(options.siteId)}-${from}.jsonl.gz`,
        asks: { day: from },
        bytes: null,
      })),
    splitPart: () => null,
    fetchPart: (part, tools) => fetchDay(part, options, differed, tools),
  }
}

async function fetchDay(
  { id, asks }: FetchPart,
  options: MatomoVisits,
  differed: Map<string, number>,
  tools: PartTools,
): Promise<PartOutcome> {
  const day = String(asks.day)
  const expected = await countVisits(day, options, tools)
  const ids = new Set<string>()
  let visitCount = 0
  const readPages = async function* () {
    for (let pageSize = pageVisits.first; ; ) {
      const page = await readPage(day, visitCount, pageSize, options, tools)
      if (page === 'too_large') {
        pageSize = Math.max(pageVisits.min, Math.floor(pageSize / 2))
        continue
      }
      if (page.length === 0) return
      visitCount += page.length
      for (const visit of page) ids.add(readVisitId(visit))
      yield page
    }
  }
  await writeLines(readPages(), tools)
  if (ids.size !== expected || ids.size !== visitCount) {
    const mismatch = `${visitCount} visits came, ${ids.size} of them different, and Matomo counts ${expected}`
    // The count is from Matomo's report, which may be older than the visits. The same number twice counts as complete.
    if (ids.size !== visitCount || differed.get(id) !== ids.size) {
      differed.set(id, ids.size)
      throw new BrokenAnswer(mismatch)
    }
    tools.warn(`${mismatch}, twice`)
  }
  return visitCount === 0 ? { kind: 'empty' } : { kind: 'file', lineCount: visitCount }
}

async function countVisits(day: string, options: MatomoVisits, tools: PartTools): Promise<number> {
  const answer = parseJson(
    await callApi({ method: 'VisitsSummary.getVisits', period: 'day', date: day }, options, tools),
  )
  const value = isJsonObject(answer) ? ownValue(answer, 'value') : undefined
  if (value === undefined || !/^\d+$/.test(textOf(value))) throw new BrokenAnswer('the count of visits is no number')
  return Number(textOf(value))
}

async function readPage(
  day: string,
  offset: number,
  pageSize: number,
  options: MatomoVisits,
  tools: PartTools,
): Promise<string[] | 'too_large'> {
  const query = { filter_limit: String(pageSize), filter_offset: String(offset), filter_sort_order: 'asc' }
  try {
    const text = await callApi(
      { method: 'Live.getLastVisitsDetails', period: 'day', date: day, ...query },
      options,
      tools,
    )
    const visits = splitJsonList(text)
    if (visits === null) throw new BrokenAnswer('the visits are no list')
    return visits
  } catch (fault) {
    // PHP returns 500 or 504 when it runs out of memory or time.
    if (fault instanceof FetchWait && /\(50[04]\)/.test(fault.message) && pageSize > pageVisits.min) return 'too_large'
    throw fault
  }
}

/** Sends the token in the body, since web servers log URLs. */
async function callApi(query: Record<string, string>, options: MatomoVisits, tools: PartTools): Promise<string> {
  const { host, siteId, token } = options
  await tools.takeCall()
  const parameters = { module: 'API', idSite: siteId, format: 'JSON', ...query, token_auth: token }
  const answer = await sendRequest({
    method: 'POST',
    url: new URL('index.php', host.href.endsWith('/') ? host : `${host}/`),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: String(new URLSearchParams(parameters)),
    signal: tools.signal,
    warn: tools.warn,
  })
  if (answer.status !== 200)
    throw await createStatusFault(answer, { source: 'Matomo', secrets: [token], nowMs: tools.nowMs() })
  const text = (await readBody(answer.body, pageBytesMax)).toString()
  checkAnswer(text, token)
  return text
}

/** Matomo returns errors with status 200. @throws FetchStop with its message; BrokenAnswer for invalid JSON. */
function checkAnswer(text: string, token: string): void {
  if (!text.startsWith('{')) return
  let value: JsonValue
  try {
    value = parseJson(text)
  } catch {
    throw new BrokenAnswer('the answer is not whole')
  }
  if (isJsonObject(value) && ownValue(value, 'result') === 'error')
    throw new FetchStop(
      `Matomo says: ${redactSecrets(textOf(ownValue(value, 'message') ?? ''), [token])}. Check the token and what it may see.`,
    )
}

function readVisitId(text: string): string {
  let visit: JsonValue
  try {
    visit = parseJson(text)
  } catch {
    throw new BrokenAnswer('the visits are not whole')
  }
  const id = isJsonObject(visit) ? ownValue(visit, 'idVisit') : undefined
  if (id === undefined) throw new BrokenAnswer('a visit has no idVisit')
  return textOf(id)
}
