// Runs the fetch stage in a test, against a stand-in, with a clock whose waits take no time.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { openFetchSource } from '#compose/import/open-fetch-source.ts'
import { parseFetchConfig } from '#importer/fetch/fetch-config.ts'
import type { FetchProgress } from '#importer/fetch/fetch-reporter.ts'
import { type FetchResult, fetchStage } from '#importer/fetch/fetch-stage.ts'
import type { FetchClock } from '#importer/fetch/waiting.ts'
import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import { tryFileLock } from '#processes/data-lock.ts'
import { quickClock } from './fixed-clock.ts'

/** Later than every range that the tests request. */
export const fetchNowMs = Date.UTC(2026, 0, 15)

export const fetchSecrets = {
  MIXPANEL_API_SECRET: 'mixpanel-secret-1',
  AMPLITUDE_API_KEY: 'amplitude-key-1',
  AMPLITUDE_SECRET_KEY: 'amplitude-secret-1',
  MATOMO_TOKEN: 'matomo-token-1',
  POSTHOG_PERSONAL_KEY: 'phx_personal1',
}

export interface Fetching {
  readonly clock?: FetchClock
  readonly env?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: FetchProgress) => void
  readonly onNotice?: (line: string) => void
  readonly findSpaceProblem?: FindSpaceProblem
}

/** @param config as `parseFetchConfig` takes it. */
export async function fetchInto(
  folder: string,
  config: Readonly<Record<string, string | boolean>>,
  { clock = quickClock(), env = fetchSecrets, signal = new AbortController().signal, ...told }: Fetching = {},
): Promise<FetchResult> {
  using source = await openFetchSource(parseFetchConfig(config), env, clock.nowMs())
  return await fetchStage({ folder, config: JSON.stringify(config), source, clock, tryFileLock, signal, ...told })
}

export function rawFiles(folder: string): string[] {
  return readdirSync(join(folder, 'raw'), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(join(folder, 'raw').length + 1))
    .sort()
}

/** Lines of all `.jsonl.gz` files. */
export function rawLines(folder: string): string[] {
  return rawFiles(folder).flatMap(name =>
    gunzipSync(readFileSync(join(folder, 'raw', name)))
      .toString()
      .split('\n')
      .filter(Boolean),
  )
}
