// Amplitude's Export API: a zip of `.json.gz` files for whole hours of upload, both ends inclusive. Source:
// docs/wire/import.md §1.1; Amplitude's documentation, "Export API": 4 GB and 365 days per call, 404 for no data.

import { BrokenAnswer, WindowTooLarge } from '#importer/fetch/fetch-faults.ts'
import { basicAuthorization, listBasicSecrets } from '#importer/fetch/fetch-secrets.ts'
import type { FetchPart, FetchSource, PartOutcome, PartTools } from '#importer/fetch/fetch-source.ts'
import {
  type DayWindow,
  divideIntoWindows,
  type HourWindow,
  splitHours,
  toHourWindow,
} from '#importer/fetch/fetch-windows.ts'
import { createStatusFault, sendRequest } from '#importer/fetch/http-request.ts'
import { downloadBody } from './download-part.ts'
import { checkZip } from './whole-zip.ts'

export const amplitudeHosts = { us: 'https://amplitude.com', eu: 'https://analytics.eu.amplitude.com' } as const
/** Data is available about two hours after its receipt. */
export const amplitudeReadyMs = 3 * 3_600_000

export interface AmplitudeExport {
  readonly host: URL
  /** Days of upload, in UTC. */
  readonly range: DayWindow
  readonly windowDays: number
  readonly apiKey: string
  readonly secretKey: string
}

export function createAmplitudeSource(options: AmplitudeExport): FetchSource {
  return {
    limits: { perSecond: null, perHour: null, atOnce: 2 },
    advice: 'Use Amplitude’s export to Amazon S3 for these hours, and fetch from there with --source s3.',
    callsPerPart: 1,
    notes: [
      'Amplitude exports by the time of upload, not of the event: add some days to --to for events that came late.',
    ],
    listParts: () => divideIntoWindows(options.range, options.windowDays).map(days => toFetchPart(toHourWindow(days))),
    splitPart: ({ asks }) => splitHours(asks as unknown as HourWindow)?.map(toFetchPart) ?? null,
    fetchPart: (part, tools) => fetchHours(part, options, tools),
  }
}

function toFetchPart({ from, to }: HourWindow): FetchPart {
  return { id: `amplitude-${from === to ? from : `${from}-to-${to}`}.zip`, asks: { from, to }, bytes: null }
}

async function fetchHours(
  { asks }: FetchPart,
  { host, apiKey, secretKey }: AmplitudeExport,
  tools: PartTools,
): Promise<PartOutcome> {
  const url = new URL('/api/2/export', host)
  url.searchParams.set('start', String(asks.from))
  url.searchParams.set('end', String(asks.to))
  await tools.takeCall()
  const authorization = basicAuthorization(apiKey, secretKey)
  const answer = await sendRequest({ url, headers: { authorization }, signal: tools.signal, warn: tools.warn })
  if (answer.status === 404) {
    answer.body.resume()
    return { kind: 'empty' }
  }
  if (answer.status !== 200) {
    const fault = await createStatusFault(answer, {
      source: 'Amplitude',
      secrets: listBasicSecrets(apiKey, secretKey),
      nowMs: tools.nowMs(),
    })
    if (answer.status === 400 || answer.status === 413) throw new WindowTooLarge(fault.message, true)
    if (answer.status === 504) throw new WindowTooLarge(fault.message, false)
    throw fault
  }
  // Hours without data return 404, so an empty body is a failure of the source.
  if ((await downloadBody(answer.body, tools)) === 0) throw new BrokenAnswer('the answer is empty')
  const { lineCount } = await checkZip(tools.file.path)
  return { kind: 'file', lineCount }
}
