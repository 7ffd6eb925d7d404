// `pennon import plan FOLDER [FILES…]`: fixes in the job's folder what will be imported. Stage 0.
// Source: docs/wire/import.md §2.1.

import { randomUUID } from 'node:crypto'
import { existsSync, realpathSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { exitAfterOutput } from '#commands/client/exit-after-output.ts'
import { formatBytes } from '#commands/format-bytes.ts'
import { refuse } from '#commands/refuse.ts'
import { formatCount, truncateList } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { toPrintable } from '#core/printable.ts'
import type { FetchedParts } from '#importer/fetch/fetch-state.ts'
import { isJobFolder, JobFolder } from '#importer/job/job-folder.ts'
import { checkJobState, createJobState } from '#importer/job/job-state.ts'
import { type ImportPlan, type ImportTarget, planFile, readPlan, writePlan } from '#importer/job/plan.ts'
import { progressFile } from '#importer/job/progress.ts'
import { findRawFiles } from '#importer/read/raw-files.ts'
import type { RawFile } from '#importer/read/read-record.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import { formatDuration } from '#importer/stages/report/format-figures.ts'
import { describeDifferingZones } from '#importer/stages/report/plan-choices.ts'
import { version } from '#version.ts'
import { removeStageResults } from '../job/job-stages.ts'
import {
  createFolderOrRefuse,
  findSourceOrRefuse,
  lockJob,
  readFetchedPartsOfJob,
  refuseNonFolderPath,
  runJobOrRefuse,
} from '../job/open-job.ts'
import { addDefaultProfileTime } from '../job/profile-time.ts'
import { exitOnInterruption } from '../messages/interruption.ts'
import { formatNextStep, printJson, printLines, quotePath } from '../messages/print.ts'
import { completePlanOptions, type GivenPlanOptions } from './complete-plan-options.ts'
import { readImportLimits, readSourceConfig } from './plan-options.ts'
import { hasLiveEvents, resolveImportTarget } from './resolve-target.ts'

/** The speed of staging and rehearsal together, which read the bytes about three times, for the estimate. */
const bytesPerSecond = 10_000_000
/**
 * Space that a job needs in addition to the raw files, as a multiple of their size; the files of the job are usually
 * compressed too.
 */
const spaceFactor = 2

export async function planImport(path: string, namedFiles: readonly string[], given: GivenPlanOptions): Promise<void> {
  exitAfterOutput()
  process.umask(0o077)
  const finish = exitOnInterruption(
    `canceled; nothing was planned. To plan it: pennon import plan ${quotePath(path)} …`,
  )
  const folder = new JobFolder(resolve(path))
  refuseNonFolderPath(path, `pennon import plan FOLDER ${quotePath(path)}`)
  await runJobOrRefuse(folder, async () => checkIsNotSent(folder, path))
  const fetched = existsSync(folder.path) ? readFetchedPartsOfJob(folder) : null
  const { options, files } = await completePlanOptions(
    given,
    namedFiles,
    fetched === null ? undefined : { source: readFetchSource(fetched) },
  )
  const source = findSourceOrRefuse(options.source)
  if (fetched !== null && files.length === 0) checkFetchSource(path, fetched, source.name)
  const { notes: rawNotes, ...raw } = await selectRawFiles(folder, fetched, files)
  try {
    await runJobOrRefuse(folder, async () => {
      const asked = await resolveImportTarget(options)
      const target = asked?.target ?? null
      const { config: chosen, holdLiveWindow } = readSourceConfig(options)
      const { config, notes } = await decidePersonUpdates(source.name, chosen, target)
      const plan: ImportPlan = {
        v: 4,
        jobId: randomUUID(),
        createdAt: new Date().toISOString(),
        toolVersion: version,
        source: source.name,
        config: addDefaultProfileTime(config, source.name, fetched),
        ...raw,
        format: options.format ?? null,
        target,
        limits: {
          ...{ ...readImportLimits(options), holdLiveWindow },
          ...(asked?.isPersonless === true && { isPersonless: true }),
        },
      }
      // Refuse an invalid configuration now, not after hours of staging.
      const nowMs = Date.parse(plan.createdAt)
      source.prepare(plan.config, { nowMs, holdLiveWindow, findFact: () => null })
      storePlan(folder, plan, path)
      const zoneNote = describeDifferingZones(plan.config)
      const allNotes = [...rawNotes, ...(asked?.notes ?? []), ...(zoneNote === null ? [] : [zoneNote]), ...notes]
      printPlan(plan, fetched, allNotes, path, given)
    })
  } finally {
    finish()
  }
}

/** Stores the plan. This is the last step of planning, since a folder is created only for a plan that can run. */
function storePlan(folder: JobFolder, plan: ImportPlan, path: string): void {
  createFolderOrRefuse(folder.path)
  const unlock = lockJob(folder)
  try {
    checkIsNotSent(folder, path)
    // Remove an earlier plan and its results before writing the new plan, so that no crash leaves both.
    folder.remove(planFile, progressFile)
    removeStageResults(folder)
    createJobState(folder, plan.jobId)
    writePlan(folder, plan)
  } finally {
    unlock()
  }
}

function checkIsNotSent(folder: JobFolder, path: string): void {
  const earlier = readPlan(folder)
  if (earlier !== null) checkJobState(folder, earlier.jobId)
  if (readCheckpoint(folder) !== null)
    refuse(
      `${path} has already been sent, at least in part. Plan the next import in another folder: pennon import plan`,
    )
}

/**
 * Decides whether PostHog events may change persons, as they did in PostHog: in a new project they have to; a project with
 * live events has newer values. Source: docs/wire/import.md §1.8.
 */
async function decidePersonUpdates(
  source: string,
  config: JsonObject,
  target: ImportTarget | null,
): Promise<{ readonly config: JsonObject; readonly notes: readonly string[] }> {
  if (source !== 'posthog' || target === null || config.strip_person_updates !== undefined) return { config, notes: [] }
  const isLive = await hasLiveEvents(target)
  if (isLive === false) return { config: { ...config, strip_person_updates: false }, notes: [] }
  const note = isLive
    ? 'The project has live events, so $set, $set_once and $unset of the events are omitted; the rehearsal counts them. To keep them: --keep-person-data.'
    : 'Cannot check whether the project has live events, so $set, $set_once and $unset are kept; to omit them: --strip-person-data.'
  return { config: isLive ? { ...config, strip_person_updates: true } : config, notes: [note] }
}

function describeFetched(source: string, { isComplete, parts, partsWaiting }: FetchedParts): string {
  const size = formatBytes(parts.reduce((sum, { bytes }) => sum + bytes, 0))
  const here = `${formatCount(parts.length, 'file')} of ${source}, ${size}, fetched`
  if (isComplete) return `${here}.`
  const missing = partsWaiting === 0 ? 'the remaining parts' : formatCount(partsWaiting, 'more part')
  return `${parts.length === 0 ? '' : `${here}; `}${missing} of ${source} ${partsWaiting > 1 ? 'are' : 'is'} downloaded first.`
}

/** @returns the product that the files were fetched from; null for a bucket or a list of addresses. */
function readFetchSource({ config }: FetchedParts): string | null {
  const { source } = config as { source?: unknown }
  return typeof source === 'string' && source !== 's3' && source !== 'http' ? source : null
}

function checkFetchSource(path: string, fetched: FetchedParts, named: string): void {
  const source = readFetchSource(fetched)
  if (source !== null && source !== named)
    refuse(
      `${path} contains a download from ${source}, but --source is ${named}. Omit --source, or pass the files that come from ${named}`,
    )
}

/** The files of a plan, and notes on what was left out. */
type RawOfPlan = Pick<ImportPlan, 'files' | 'fetch'> & { readonly notes: readonly string[] }

/** The named files or, if none are named, what `pennon import fetch` puts into the folder. */
async function selectRawFiles(
  { path: own }: JobFolder,
  fetched: FetchedParts | null,
  files: readonly string[],
): Promise<RawOfPlan> {
  if (files.length === 0) {
    if (fetched === null)
      refuse('pass the files of the export, or download them into the folder first: pennon import fetch')
    return { files: [], fetch: fetched.config as JsonObject, notes: [] }
  }
  for (const file of files) refuseJobFolder(file, own)
  const leftOut: string[] = []
  const deadLinks: string[] = []
  const otherNames: string[] = []
  let found: RawFile[]
  try {
    found = await findRawFiles(files, {
      isLeftOut: folder => (isSamePath(folder, own) || isJobFolder(folder)) && leftOut.push(folder) > 0,
      onDeadLink: link => deadLinks.push(link),
      onOtherName: (name, first) => otherNames.push(`${name} (${first})`),
    })
  } catch (error) {
    refuse(toPrintable(`the files cannot be read: ${(error as Error).message}`))
  }
  const count = (names: readonly string[], what: string) => formatCount(names.length, what)
  const notes = [
    ...describeSkipped(leftOut, 'since it is the folder of an import', 'since they are folders of imports'),
    ...describeSkipped(
      deadLinks,
      'a link to a missing file',
      `${count(deadLinks, 'link')} to missing files`,
      ' To import them, put the files in place and plan again.',
    ),
    ...describeSkipped(
      otherNames,
      'another name of an included file',
      `${count(otherNames, 'other name')} of included files`,
    ),
  ]
  if (found.length === 0) refuse(toPrintable([`there is no file in ${files.join(', ')}`, ...notes].join('. ')))
  return { files: found.map(({ path: named, object }) => ({ path: resolve(named), object })), fetch: null, notes }
}

/**
 * Refuses a job's folder as an export: a job writes into its folder while it reads, so it would read its own files as
 * records.
 */
function refuseJobFolder(file: string, own: string): void {
  if (isSamePath(file, own))
    refuse(
      `${file} is both the folder of the import and the export. The import needs its own folder, for example: pennon import plan ${quotePath(`${own}-import`)} ${quotePath(file)}`,
    )
  if (isJobFolder(file))
    refuse(
      `${file} is the folder of an import, not an export. Pass the files it was planned with, or ${quotePath(join(file, 'raw'))} for the files downloaded into it`,
    )
}

/** Whether two paths lead to the same folder, even through a symbolic link. */
function isSamePath(a: string, b: string): boolean {
  return existsSync(a) && existsSync(b) && realpathSync(a) === realpathSync(b)
}

/** @param names the names of the files left out; if there are none, there is no note. */
function describeSkipped(names: readonly string[], one: string, several: string, remedy = ''): readonly string[] {
  if (names.length === 0) return []
  return [`Skipped, ${names.length === 1 ? one : several}: ${truncateList(names).join(', ')}.${remedy}`]
}

function printPlan(
  plan: ImportPlan,
  fetched: FetchedParts | null,
  notes: readonly string[],
  path: string,
  { json = false, isFollowed = false }: GivenPlanOptions,
): void {
  const bytes = plan.files.reduce((sum, file) => sum + (statSync(file.path, { throwIfNoEntry: false })?.size ?? 0), 0)
  const seconds = Math.ceil(bytes / bytesPerSecond)
  const { target } = plan
  if (json) printJson({ ...plan, bytes, seconds, notes })
  else
    printLines([
      ...(plan.fetch === null
        ? [
            `${formatCount(plan.files.length, 'file')} of ${plan.source}, ${formatBytes(bytes)}.`,
            `Staging, scan and rehearsal take about ${formatDuration(seconds)}, longer for compressed files, and need about ${formatBytes(bytes * spaceFactor)} in ${path}.`,
          ]
        : [describeFetched(plan.source, fetched!)]),
      target === null
        ? 'No target: set --project-key to send it later; a rehearsal needs none.'
        : `Target: ${target.projectName ?? 'the project of the key'} on ${target.address}; the key is valid.`,
      ...notes,
      'Nothing was sent.',
      ...(isFollowed
        ? []
        : [formatNextStep({ command: `pennon import run ${quotePath(path)}`, why: 'rehearse it; nothing is sent' })]),
    ])
}
