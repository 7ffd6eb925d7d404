// Creates the FetchSource for a configuration's export API, with secrets from environment variables.

import type { FetchConfig } from '#importer/fetch/fetch-config.ts'
import { type FetchEnvironment, requireSecret } from '#importer/fetch/fetch-secrets.ts'
import type { FetchPart, FetchSource } from '#importer/fetch/fetch-source.ts'
import { checkFetchRange, type DayWindow, days, divideIntoWindows, splitWindow } from '#importer/fetch/fetch-windows.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import type { ExportApi } from './api-request.ts'
import { matomo } from './matomo-visits.ts'
import { posthog } from './posthog-events.ts'
import { amplitude, mixpanel } from './window-exports.ts'

const apis: Readonly<Record<string, ExportApi>> = { mixpanel, amplitude, matomo, posthog }

/**
 * @param isPlan whether no request will be sent, so that secrets may be missing.
 * @throws ImportConfigError for a range that has not ended or an unknown region; FetchStop for a missing secret.
 */
export function createApiSource(
  config: FetchConfig,
  env: FetchEnvironment,
  nowMs: number,
  isPlan: boolean,
): FetchSource {
  const { hosts, ready, unit, ending = 'jsonl.gz', open, ...api } = apis[config.source]!
  const { source, region } = config
  const range = { from: config.from!, to: config.to! }
  checkFetchRange(range, nowMs, ready.afterMs, ready.zone)
  const address = config.host ?? hosts[region]
  if (address === undefined)
    throw new ImportConfigError(`${source} has no region ${region}. Regions: ${Object.keys(hosts).join(', ')}.`)
  const host = new URL(address.replace(/\/?$/, '/'))
  const readSecret = (name: string, what: string) => (isPlan ? '' : requireSecret(env, name, what))
  const { name, fetchWindow, limits = api.limits } = open(config, host, readSecret, env)
  const dayCount = unit === undefined ? 1 : (config.window_days ?? 1)
  const toPart = ({ from, to }: DayWindow): FetchPart => ({
    ...{ id: `${name}-${from === to ? from : `${from}-to-${to}`}.${ending}`, asks: { from, to }, bytes: null },
  })
  const toWindow = ({ asks }: FetchPart) => asks as unknown as DayWindow
  return {
    ...{ ...api, limits },
    listParts: () => divideIntoWindows(range, dayCount, unit).map(toPart),
    splitPart: part => splitWindow(toWindow(part), unit ?? days)?.map(toPart) ?? null,
    fetchPart: (part, tools) => fetchWindow(toWindow(part), tools),
    [Symbol.dispose]: () => undefined,
  }
}
