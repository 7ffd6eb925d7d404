// Matomo's `Live.getLastVisitsDetails`, by completed days, in pages. Paging by offset over a changing list loses and
// repeats visits, so the received visits are compared with Matomo's own count. Source: docs/wire/import.md §1.6.

import { Readable } from 'node:stream'
import { getOwnValue, isJsonObject, parseJson, toComparableText } from '#core/json.ts'
import { BrokenAnswer, FetchStop } from '#importer/fetch/fetch-faults.ts'
import { redactSecrets } from '#importer/fetch/fetch-secrets.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import { hours } from '#importer/fetch/fetch-windows.ts'
import { splitRecords } from '#importer/read/split-records.ts'
import {
  type ExportApi,
  PageTooLarge,
  parseJsonAnswer,
  readPages,
  readPageText,
  requestApi,
  writePageLines,
} from './api-request.ts'

/** Visits per call. Matomo advises 10,000, which can take gigabytes for visits with many actions. */
const pageVisits = { first: 1_000, min: 10, divisor: 2 }

/** The days are in the site's time zone. `index.php` is below the address of the installation. */
export const matomo: ExportApi = {
  hosts: {},
  // A day is complete an hour after its end, since a visit may extend half an hour into the next day.
  ready: { afterMs: hours.ms, zone: 'any' },
  limits: { perSecond: 5, perHour: null, atOnce: 1 },
  advice: 'Raise the memory limit of PHP and the time that the web server allows.',
  callsPerPart: 3,
  notes: ['A day of more than 1,000 visits takes a call more for every 1,000.'],
  open({ site_id }, host, secret) {
    const token = secret('MATOMO_TOKEN', 'an auth token of a user who may view the site')
    const site: Site = { id: site_id!, url: new URL('index.php', host), token }
    /** By day: how many visits the last try received, if Matomo's count differed. */
    const differed = new Map<string, number>()
    return {
      name: `matomo-${encodeURIComponent(site.id)}`,
      async fetchWindow({ from: day }, tools) {
        const { received, distinct, expected } = await fetchDay(day, site, tools)
        if (distinct !== expected || distinct !== received) {
          const mismatch = `${received} visits came, ${distinct} of them different, and Matomo counts ${expected}`
          // Matomo's count is from a report that may be older than the visits, so two tries with the same number of visits
          // count as complete.
          if (distinct !== received || differed.get(day) !== distinct) {
            differed.set(day, distinct)
            throw new BrokenAnswer(mismatch)
          }
          tools.warn(`${mismatch}, twice`)
        }
        return received > 0
      },
    }
  },
}

interface Site {
  readonly id: string
  readonly url: URL
  readonly token: string
}

/** @returns how many visits Matomo counts (`expected`), were received, and were distinct. */
async function fetchDay(date: string, site: Site, tools: PartTools) {
  const expected = await countVisits(date, site, tools)
  const ids = new Set<string>()
  let offset = 0
  const pages = readPages(pageVisits, async limit => {
    const query = { filter_limit: String(limit), filter_offset: String(offset), filter_sort_order: 'asc' }
    const visits = await splitJsonList(await callApi('Live.getLastVisitsDetails', { date, ...query }, site, tools))
    if (visits === null) throw new BrokenAnswer('the visits are no list')
    offset += visits.length
    for (const visit of visits) ids.add(readVisitId(visit))
    return visits
  })
  return { received: await writePageLines(pages, tools), distinct: ids.size, expected }
}

async function countVisits(date: string, site: Site, tools: PartTools): Promise<number> {
  const answer = parseJson(await callApi('VisitsSummary.getVisits', { date }, site, tools))
  const value = isJsonObject(answer) ? getOwnValue(answer, 'value') : undefined
  if (value === undefined || !/^\d+$/.test(toComparableText(value)))
    throw new BrokenAnswer('the count of visits is no number')
  return Number(toComparableText(value))
}

/** Sends the token in the body, since web servers log URLs. */
async function callApi(
  method: string,
  query: Readonly<Record<string, string>>,
  { id, url, token }: Site,
  tools: PartTools,
): Promise<string> {
  const parameters = { module: 'API', idSite: id, format: 'JSON', method, period: 'day', ...query, token_auth: token }
  const answer = await requestApi(
    {
      ...{ source: 'Matomo', secrets: [token], method: 'POST', url },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: String(new URLSearchParams(parameters)),
    },
    tools,
  )
  // PHP returns 500 or 504 when it runs out of memory or time.
  if (query.filter_limit !== undefined && (answer.status === 500 || answer.status === 504))
    throw new PageTooLarge('', { cause: answer.fault })
  if (answer.fault !== null) throw answer.fault
  const text = await readPageText(answer)
  checkAnswer(text, token)
  return text
}

/** Matomo returns errors with status 200. @throws FetchStop with its message; BrokenAnswer for invalid JSON. */
function checkAnswer(text: string, token: string): void {
  const value = text.startsWith('{') ? parseJsonAnswer(text) : null
  if (value !== null && isJsonObject(value) && getOwnValue(value, 'result') === 'error')
    throw new FetchStop(
      `Matomo says: ${redactSecrets(toComparableText(getOwnValue(value, 'message') ?? ''), [token])}. Check the token and what it may see.`,
    )
}

function readVisitId(text: string): string {
  const visit = parseJsonAnswer(text, 'the visits are not whole')
  const id = isJsonObject(visit) ? getOwnValue(visit, 'idVisit') : undefined
  if (id === undefined) throw new BrokenAnswer('a visit has no idVisit')
  return toComparableText(id)
}

/**
 * Splits a JSON list without parsing it, so that its elements keep their bytes.
 * @returns each element on one line; null if the text is not a list.
 */
export async function splitJsonList(text: string): Promise<string[] | null> {
  if (!/^\s*\[/.test(text)) return null
  const elements: string[] = []
  for await (const { bytes, value, ending } of splitRecords(Readable.from([Buffer.from(text)]), 'array')) {
    if (ending === 'unclosed') return null
    // Replacing line breaks changes no value, since JSON has line breaks only between its tokens.
    if (typeof value === 'number')
      elements.push(
        Buffer.from(bytes)
          .toString('utf8', value)
          .replace(/[\r\n]+/g, ' '),
      )
  }
  return elements
}
