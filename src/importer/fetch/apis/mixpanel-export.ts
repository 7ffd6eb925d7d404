// Mixpanel's raw export: JSON lines of whole days. Source: docs/wire/import.md §1.2; Mixpanel's reference, "Raw Event
// Export": both dates are inclusive; 60 calls per hour, 3 per second, 100 at once.

import { WindowTooLarge } from '#importer/fetch/fetch-faults.ts'
import { basicAuthorization, listBasicSecrets } from '#importer/fetch/fetch-secrets.ts'
import type { FetchPart, FetchSource, PartOutcome, PartTools } from '#importer/fetch/fetch-source.ts'
import { type DayWindow, divideIntoWindows, splitDays } from '#importer/fetch/fetch-windows.ts'
import { createStatusFault, sendRequest } from '#importer/fetch/http-request.ts'
import { downloadGzip } from './download-part.ts'
import { checkGzipLines } from './whole-lines.ts'

export const mixpanelHosts = {
  us: 'https://data.mixpanel.com',
  eu: 'https://data-eu.mixpanel.com',
  in: 'https://data-in.mixpanel.com',
} as const

export interface MixpanelExport {
  readonly host: URL
  readonly range: DayWindow
  /** Days per call. */
  readonly windowDays: number
  readonly callsPerHour: number
  /** The project's API secret with an empty `secret`, or a service account, which also needs `projectId`. */
  readonly user: string
  readonly secret: string
  readonly projectId: string | null
}

export function createMixpanelSource(options: MixpanelExport): FetchSource {
  const { range, windowDays, callsPerHour } = options
  return {
    limits: { perSecond: 3, perHour: callsPerHour, atOnce: 4 },
    advice:
      'Use Mixpanel’s export to a bucket (Data Pipelines, raw) for these days, and fetch from there with --source s3.',
    callsPerPart: 1,
    notes: [
      'Mixpanel counts days in the zone of the project, and adds late events for days: leave a few days before --to.',
    ],
    listParts: () => divideIntoWindows(range, windowDays).map(toFetchPart),
    splitPart: ({ asks }) => splitDays(asks as unknown as DayWindow)?.map(toFetchPart) ?? null,
    fetchPart: (part, tools) => fetchDays(part, options, tools),
  }
}

function toFetchPart({ from, to }: DayWindow): FetchPart {
  return { id: `mixpanel-${from === to ? from : `${from}-to-${to}`}.jsonl.gz`, asks: { from, to }, bytes: null }
}

async function fetchDays(
  { asks }: FetchPart,
  { host, user, secret, projectId }: MixpanelExport,
  tools: PartTools,
): Promise<PartOutcome> {
  const url = new URL('/api/2.0/export', host)
  url.searchParams.set('from_date', String(asks.from))
  url.searchParams.set('to_date', String(asks.to))
  // Without milliseconds, events within one second lose their order.
  url.searchParams.set('time_in_ms', 'true')
  if (projectId !== null) url.searchParams.set('project_id', projectId)
  await tools.takeCall()
  const answer = await sendRequest({
    url,
    headers: { authorization: basicAuthorization(user, secret), 'accept-encoding': 'gzip', accept: 'text/plain' },
    signal: tools.signal,
    warn: tools.warn,
  })
  if (answer.status !== 200) {
    const fault = await createStatusFault(answer, {
      source: 'Mixpanel',
      secrets: listBasicSecrets(user, secret),
      nowMs: tools.nowMs(),
    })
    if (answer.status === 400 || answer.status === 413) throw new WindowTooLarge(fault.message, true)
    if (answer.status === 504) throw new WindowTooLarge(fault.message, false)
    throw fault
  }
  if ((await downloadGzip(answer, tools)) === 0) return { kind: 'seems_empty' }
  const { lineCount } = await checkGzipLines(tools.file.path)
  return lineCount === 0 ? { kind: 'seems_empty' } : { kind: 'file', lineCount }
}
