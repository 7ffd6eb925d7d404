// Exports of whole windows of time in one file: Amplitude's Export API and Mixpanel's raw export. Source:
// docs/wire/import.md §1.1, §1.2.

import type { FetchConfig } from '#importer/fetch/fetch-config.ts'
import { BrokenAnswer, WindowTooLarge } from '#importer/fetch/fetch-faults.ts'
import type { BasicCredentials } from '#importer/fetch/fetch-secrets.ts'
import type { FetchPart, FetchSource, PartTools } from '#importer/fetch/fetch-source.ts'
import {
  type DayWindow,
  divideIntoWindows,
  type HourWindow,
  splitDays,
  splitHours,
  toHourWindow,
} from '#importer/fetch/fetch-windows.ts'
import { type ApiRequest, requestApi } from './api-request.ts'
import { checkGzipLines, checkZip } from './whole-files.ts'
import { downloadGzip, writeBody } from './written-part.ts'

/**
 * A zip of `.json.gz` files for whole hours of upload, both ends inclusive.
 * Source: Amplitude's documentation, "Export API": 4 GB and 365 days per call, 404 for no data.
 */
export function createAmplitudeSource(
  { range, window_days }: FetchConfig,
  host: URL,
  { authorization, secrets }: BasicCredentials,
): FetchSource {
  const toFetchPart = (hours: HourWindow) => toWindowPart('amplitude', hours, 'zip')
  return {
    limits: { perSecond: null, perHour: null, atOnce: 2 },
    advice: 'Use Amplitude’s export to Amazon S3 for these hours, and fetch from there with --source s3.',
    callsPerPart: 1,
    notes: [
      'Amplitude exports by the time of upload, not of the event: add some days to --to for events that came late.',
    ],
    listParts: () => divideIntoWindows(range!, window_days ?? 1).map(days => toFetchPart(toHourWindow(days))),
    splitPart: ({ asks }) => splitHours(asks as unknown as HourWindow)?.map(toFetchPart) ?? null,
    async fetchPart({ asks }, tools) {
      const url = new URL('/api/2/export', host)
      url.searchParams.set('start', String(asks.from))
      url.searchParams.set('end', String(asks.to))
      const answer = await requestWindow({ source: 'Amplitude', secrets, url, headers: { authorization } }, tools, 404)
      if (answer.status === 404) return false
      // Hours without data return 404, so an empty body is a failure of the source.
      if ((await writeBody(answer.body, tools)) === 0) throw new BrokenAnswer('the answer is empty')
      await checkZip(tools.file.path)
      return true
    },
  }
}

/** The limit of Mixpanel's standard contract. */
const mixpanelCallsPerHour = 60

/**
 * JSON lines of whole days. Source: Mixpanel's reference, "Raw Event Export": both dates are inclusive; 60 calls per
 * hour, 3 per second, 100 at once.
 * @param credentials the project's API secret as the user, or a service account, which also needs the project's id.
 */
export function createMixpanelSource(
  { range, window_days, calls_per_hour, project_id }: FetchConfig,
  host: URL,
  { authorization, secrets }: BasicCredentials,
): FetchSource {
  const toFetchPart = (days: DayWindow) => toWindowPart('mixpanel', days, 'jsonl.gz')
  const headers = { authorization, 'accept-encoding': 'gzip', accept: 'text/plain' }
  return {
    limits: { perSecond: 3, perHour: calls_per_hour ?? mixpanelCallsPerHour, atOnce: 4 },
    advice:
      'Use Mixpanel’s export to a bucket (Data Pipelines, raw) for these days, and fetch from there with --source s3.',
    callsPerPart: 1,
    notes: [
      'Mixpanel counts days in the zone of the project, and adds late events for days: leave a few days before --to.',
    ],
    listParts: () => divideIntoWindows(range!, window_days ?? 1).map(toFetchPart),
    splitPart: ({ asks }) => splitDays(asks as unknown as DayWindow)?.map(toFetchPart) ?? null,
    async fetchPart({ asks }, tools) {
      const url = new URL('/api/2.0/export', host)
      url.searchParams.set('from_date', String(asks.from))
      url.searchParams.set('to_date', String(asks.to))
      // Without milliseconds, events within one second lose their order.
      url.searchParams.set('time_in_ms', 'true')
      if (project_id !== null) url.searchParams.set('project_id', project_id)
      const download = async () => {
        const answer = await requestWindow({ source: 'Mixpanel', secrets, url, headers }, tools)
        return (await downloadGzip(answer, tools)) > 0 && checkGzipLines(tools.file.path)
      }
      // An empty answer, which may be a failure, is believed only when it comes twice.
      return (await download()) || (await download())
    },
  }
}

function toWindowPart(source: string, { from, to }: DayWindow | HourWindow, ending: string): FetchPart {
  return { id: `${source}-${from === to ? from : `${from}-to-${to}`}.${ending}`, asks: { from, to }, bytes: null }
}

/** @param accepted a status besides 200 that is no failure. @throws WindowTooLarge, FetchStop, FetchWait */
async function requestWindow(request: ApiRequest, tools: PartTools, accepted = 200) {
  const answer = await requestApi(request, tools)
  const { status, fault } = answer
  if (fault === null || status === accepted) return answer
  if (status === 400 || status === 413) throw new WindowTooLarge(fault.message, true)
  throw status === 504 ? new WindowTooLarge(fault.message, false) : fault
}
