// Exports of whole windows of time in one file: Amplitude's Export API and Mixpanel's raw export. Source:
// docs/wire/import.md §1.1, §1.2.

import { BrokenAnswer, WindowTooLarge } from '#importer/fetch/fetch-faults.ts'
import { createBasicCredentials, findSecret } from '#importer/fetch/fetch-secrets.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import { days, hours } from '#importer/fetch/fetch-windows.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { type ApiRequest, downloadGzip, type ExportApi, requestApi, writeBodyToPart } from './api-request.ts'
import { checkGzipLines, checkZip } from './check-downloads.ts'

/**
 * A zip of `.json.gz` files for whole hours of upload, both ends inclusive.
 * Source: Amplitude's documentation, "Export API": 4 GB and 365 days per call, 404 for no data.
 */
export const amplitude: ExportApi = {
  hosts: { us: 'https://amplitude.com', eu: 'https://analytics.eu.amplitude.com' },
  // Data is available about two hours after its receipt.
  ready: { afterMs: 3 * hours.ms, zone: 'utc' },
  ...{ unit: hours, ending: 'zip' },
  limits: { perSecond: null, perHour: null, atOnce: 2 },
  advice: 'Use Amplitude’s export to Amazon S3 for these hours, and fetch from there with --source s3.',
  callsPerPart: 1,
  notes: [
    'Amplitude exports by the time of upload, not of the event: add some days to --to for events that came late.',
  ],
  open(_, host, secret) {
    const apiKey = secret('AMPLITUDE_API_KEY', 'the API key of the project')
    const secretKey = secret('AMPLITUDE_SECRET_KEY', 'the secret key of the project')
    const { authorization, secrets } = createBasicCredentials(apiKey, secretKey)
    return {
      name: 'amplitude',
      async fetchWindow({ from, to }, tools) {
        const url = new URL('/api/2/export', host)
        url.search = String(new URLSearchParams({ start: from, end: to }))
        const answer = await requestWindow(
          { source: 'Amplitude', secrets, url, headers: { authorization } },
          tools,
          404,
        )
        if (answer.status === 404) return false
        // Hours without data return 404, so an empty body is a failure of the source.
        if ((await writeBodyToPart(answer.body, tools)) === 0) throw new BrokenAnswer('the answer is empty')
        await checkZip(tools.file.path)
        return true
      },
    }
  },
}

/**
 * JSON lines of whole days. Source: Mixpanel's reference, "Raw Event Export": both dates are inclusive; the standard
 * contract has 60 calls per hour, 3 per second, 100 at once.
 */
export const mixpanel: ExportApi = {
  hosts: { us: 'https://data.mixpanel.com', eu: 'https://data-eu.mixpanel.com', in: 'https://data-in.mixpanel.com' },
  ready: { afterMs: 0, zone: 'any' },
  unit: days,
  limits: { perSecond: 3, perHour: 60, atOnce: 4 },
  advice:
    'Use Mixpanel’s export to a bucket (Data Pipelines, raw) for these days, and fetch from there with --source s3.',
  callsPerPart: 1,
  notes: [
    'Mixpanel counts days in the zone of the project, and adds late events for days: leave a few days before --to.',
  ],
  open({ calls_per_hour, project_id }, host, secret, env) {
    const account = findSecret(env, 'MIXPANEL_SERVICE_ACCOUNT')
    if (account !== null && project_id === null)
      throw new ImportConfigError('A service account of Mixpanel needs project_id.')
    const { authorization, secrets } =
      account === null
        ? createBasicCredentials(secret('MIXPANEL_API_SECRET', 'the API secret of the project'), '')
        : createBasicCredentials(account, secret('MIXPANEL_SERVICE_SECRET', 'the secret of the service account'))
    const headers = { authorization, 'accept-encoding': 'gzip', accept: 'text/plain' }
    // Requests times in milliseconds: with whole seconds, events within a second would lose their order.
    const always = { time_in_ms: 'true', ...(project_id !== null && { project_id }) }
    return {
      name: 'mixpanel',
      limits: { ...mixpanel.limits, ...(calls_per_hour !== null && { perHour: calls_per_hour }) },
      async fetchWindow({ from, to }, tools) {
        const url = new URL('/api/2.0/export', host)
        url.search = String(new URLSearchParams({ from_date: from, to_date: to, ...always }))
        const download = async () => {
          const answer = await requestWindow({ source: 'Mixpanel', secrets, url, headers }, tools)
          return (await downloadGzip(answer, tools)) > 0 && checkGzipLines(tools.file.path)
        }
        // Repeats the request after an empty answer, which may be a failure: only two empty answers mean that there is no
        // data.
        return (await download()) || (await download())
      },
    }
  },
}

/** @param accepted a status besides 200 that is not a failure. @throws WindowTooLarge, FetchStop, FetchWait */
async function requestWindow(request: ApiRequest, tools: PartTools, accepted = 200) {
  const answer = await requestApi(request, tools)
  const { status, fault } = answer
  if (fault === null || status === accepted) return answer
  if (status === 400 || status === 413) throw new WindowTooLarge(fault.message, true)
  throw status === 504 ? new WindowTooLarge(fault.message, false) : fault
}
