// `pennon import fetch FOLDER`: downloads the export of another product into the folder. Stage 1 of an import.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { exitAfterOutput } from '#commands/client/exit-after-output.ts'
import { readTerminalWidth } from '#commands/client/terminal.ts'
import { formatBytes } from '#commands/format-bytes.ts'
import { openFetchSource } from '#compose/import/open-fetch-source.ts'
import { formatCount, truncateList } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { toPrintable } from '#core/printable.ts'
import { computeLeastDurationMs } from '#importer/fetch/call-limits.ts'
import { checkNoOptionIgnored, parseFetchConfig } from '#importer/fetch/fetch-config.ts'
import type { FetchSource } from '#importer/fetch/fetch-source.ts'
import { type FetchResult, runFetchStage } from '#importer/fetch/fetch-stage.ts'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { formatWaitSpan, wallClock } from '#importer/fetch/waiting.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { planFile } from '#importer/job/plan.ts'
import { toCanonicalJson } from '#importer/records/canonical-json.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { tryFileLock } from '#processes/data-lock.ts'
import { createConfiguredSpaceCheck } from '../job/disk-reserve.ts'
import { createFolderOrRefuse, refuseNonFolderPath, runJobOrRefuse } from '../job/open-job.ts'
import { runUntilInterrupted } from '../messages/interruption.ts'
import { formatNextStep, printJson, printLines, printText, quotePath } from '../messages/print.ts'
import { createFetchProgress } from './fetch-progress.ts'

/** Options as commander gives them: the keys of a FetchConfig in camel case, and the keys below. */
export interface FetchOptions extends Readonly<Record<string, string | boolean | undefined>> {
  readonly source?: string
  readonly dryRun?: boolean
  readonly json?: boolean
}

export async function fetchExport(path: string, options: FetchOptions): Promise<void> {
  exitAfterOutput()
  process.umask(0o077)
  const pausedMessage = `paused. Downloaded files are kept. To continue: pennon import fetch ${quotePath(path)}`
  refuseNonFolderPath(path, 'pennon import fetch FOLDER')
  const folder = resolve(path)
  await runUntilInterrupted(
    () => pausedMessage,
    signal =>
      runJobOrRefuse(new JobFolder(folder), async () => {
        const config = readFetchConfig(folder, options)
        using source = await openFetchSource(parseFetchConfig(config), process.env, wallClock.nowMs(), options.dryRun)
        if (options.dryRun) await showPlan(source, options, signal)
        else await download(path, toCanonicalJson(config), source, options, signal)
      }),
  )
}

/** The configuration given by the options; without `--source`, the configuration with which the folder was begun. */
function readFetchConfig(folder: string, options: FetchOptions): JsonObject {
  const { dryRun: _, json: _json, ...asked } = options
  const value = Object.fromEntries(
    Object.entries(asked).map(([name, given]) => [name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`), given]),
  ) as JsonObject
  if (options.source !== undefined) return value
  const begun = readFetchedParts(folder)
  if (begun === null) throw new ImportConfigError('Set --source: nothing has been downloaded into this folder yet.')
  const bound = begun.config as JsonObject
  checkNoOptionIgnored(folder, bound, value)
  return bound
}

/** Shows what the fetch will cost. Sends requests only to a source whose parts must be listed, such as a bucket. */
async function showPlan(source: FetchSource, { json }: FetchOptions, signal: AbortSignal): Promise<void> {
  let [partCount, bytes, firstPart, lastPart] = [0, 0 as number | null, null as string | null, null as string | null]
  for await (const part of source.listParts(signal)) {
    partCount++
    bytes = bytes === null || part.bytes === null ? null : bytes + part.bytes
    firstPart ??= part.id
    lastPart = part.id
  }
  const { notes, limits, callsPerPart } = source
  const callCount = partCount * callsPerPart
  const leastMs = computeLeastDurationMs(callCount, limits)
  if (json) {
    printText(`${JSON.stringify({ partCount, callCount, leastMs, bytes, firstPart, lastPart, notes }, null, 2)}\n`)
    return
  }
  const size = bytes === null ? '' : `, ${formatBytes(bytes)}`
  printLines([
    `${formatCount(partCount, 'part')}${size}${firstPart === null ? '' : `: ${firstPart} … ${lastPart}`}`,
    `${formatCount(callCount, 'call')} or more${leastMs === 0 ? '' : `, at least ${formatWaitSpan(leastMs)} by the limits of the source`}`,
    ...notes,
    'Nothing was downloaded.',
  ])
}

async function download(
  path: string,
  config: string,
  source: FetchSource,
  { json = false }: FetchOptions,
  signal: AbortSignal,
): Promise<void> {
  const folder = resolve(path)
  const findSpaceProblem = createConfiguredSpaceCheck(folder)
  const progress = createFetchProgress({
    write: text => process.stderr.write(text),
    width: () => (json ? null : readTerminalWidth(process.stderr)),
    isJson: json,
    nowMs: wallClock.nowMs,
    limits: source.limits,
    callsPerPart: source.callsPerPart,
  })
  createFolderOrRefuse(folder, 0o700)
  let result: FetchResult
  try {
    result = await runFetchStage({
      ...{ folder, config, source, clock: wallClock, tryFileLock, signal, findSpaceProblem },
      onProgress: progress.show,
      onNotice: line => {
        progress.clear()
        process.stderr.write(`${toPrintable(line)}\n`)
      },
    })
  } finally {
    progress.end()
  }
  if (json) printJson(result)
  else printLines(describeResult(result, path))
}

function describeResult({ partsDone, partsEmpty, bytesDone, warnings }: FetchResult, path: string): string[] {
  const empty = partsEmpty === 0 ? '' : `; the source has no data for ${partsEmpty} more`
  return [
    `${formatCount(partsDone, 'part')}, ${formatBytes(bytesDone)}, ${partsDone === 1 ? 'is' : 'are'} in ${resolve(path)}/raw${empty}.`,
    ...describeWarnings(warnings),
    formatNextStep(
      existsSync(join(resolve(path), planFile))
        ? { command: `pennon import run ${quotePath(path)}`, why: 'it is already planned' }
        : { command: `pennon import plan ${quotePath(path)}`, why: 'selects what is imported, and into which project' },
    ),
  ]
}

export function describeWarnings(warnings: FetchResult['warnings']): readonly string[] {
  return truncateList(warnings.map(({ part, line }) => (part === '' ? line : `${part}: ${line}`)))
}
