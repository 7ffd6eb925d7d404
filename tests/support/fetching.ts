// Runs the fetch stage in a test, against a stand-in, with a clock whose waits take no time.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openFetchSource } from '#compose/import/open-fetch-source.ts'
import { parseFetchConfig } from '#importer/fetch/fetch-config.ts'
import { FetchWait } from '#importer/fetch/fetch-faults.ts'
import type { FetchProgress } from '#importer/fetch/fetch-reporter.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import { type FetchResult, runFetchStage } from '#importer/fetch/fetch-stage.ts'
import { toPartFile } from '#importer/fetch/part-file.ts'
import type { FetchClock } from '#importer/fetch/waiting.ts'
import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import { tryFileLock } from '#processes/data-lock.ts'
import { quickClock } from './fixed-clock.ts'
import { tempDir } from './temp-dir.ts'

/** Later than every range that the tests request. */
export const fetchNowMs = Date.UTC(2026, 0, 15)

export const fetchSecrets = {
  MIXPANEL_API_SECRET: 'mixpanel-secret-1',
  AMPLITUDE_API_KEY: 'amplitude-key-1',
  AMPLITUDE_SECRET_KEY: 'amplitude-secret-1',
  MATOMO_TOKEN: 'matomo-token-1',
  POSTHOG_PERSONAL_KEY: 'phx_personal1',
}

/** @param spaceBytes how many bytes of a part may be written. */
export function createPartTools(t: TestContext, spaceBytes = Infinity) {
  const file = toPartFile(tempDir(t), 'a')
  const seen = {
    announced: 0,
    received: 0,
    saved: null as number | null,
    written: () => statSync(file.path, { throwIfNoEntry: false })?.size ?? 0,
  }
  const tools: PartTools = {
    ...{ file, signal: new AbortController().signal, savedBytes: 0 },
    takeCall: async () => undefined,
    willWrite: bytes => {
      seen.announced += bytes
      if (seen.announced > spaceBytes) throw new FetchWait('the disk is full')
    },
    received: bytes => {
      seen.received += bytes
    },
    saveBytes: bytes => {
      seen.saved = bytes
    },
    warn: () => undefined,
  }
  return { tools, seen }
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
  return await runFetchStage({ folder, config: JSON.stringify(config), source, clock, tryFileLock, signal, ...told })
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
