// Carries out requests to rebuild or split persons, in the worker that owns the import stream, between import jobs. Both
// operations can be repeated: after a crash, a request begins again. Source: docs/wire/private-api.md 6.2.

import { isSameJson } from '#core/json-equal.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { Person } from '#core/persons/person.ts'
import {
  deriveSplitUuid,
  emptyReport,
  type PersonRepair,
  type RebuildRequest,
  type RepairReport,
  type RepairSample,
  reportedKeysMax,
  reportedPersonsMax,
  type SplitDistinctId,
} from '#core/persons/person-repair.ts'
import { type LoadedChunk, noChunkChanges } from '#core/processing/chunk.ts'
import { applyHistoryDifference } from '#core/processing/history/apply-difference.ts'
import { foldHistory } from '#core/processing/history/fold-history.ts'
import { splitPerson } from '#core/processing/history/split-person.ts'
import { type JobBatch, ProjectGoneError, type PublishedBatch } from '#core/processing/imports/publish-staging.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import { findConnectedIds, findNewlyLinkedIds } from './find-connected-ids.ts'
import { type ImportWorkDeps, runJobBatch } from './job-batch.ts'
import { isQueryFailure, retryQuery } from './query-failures.ts'
import { BatchSize, groupIntoBatches, pageSize, readHistory } from './read-history.ts'

/** A job id that no property mark contains. */
const noJobId = -1

const unchanged: PublishedBatch = { overrides: [], changes: noChunkChanges }

/** Works until the request is done. @throws PortError, NotOwnerError */
export async function repairPersons(repair: PersonRepair, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { id, projectId, request } = repair
  try {
    if (request.kind === 'split') await splitOne(repair, request, deps, signal)
    else await rebuild({ ...repair, request }, deps, signal)
  } catch (cause) {
    if (!(cause instanceof ProjectGoneError)) throw cause
  }
  if (signal.aborted) return
  await deps.jobs.finishRepair(id, deps.clock.nowMs())
  deps.logger.info({ personRepair: id, project: projectId, kind: request.kind }, 'persons repaired')
}

async function splitOne(
  { projectId }: PersonRepair,
  { uuid, mainId }: { readonly uuid: string; readonly mainId: string },
  deps: ImportWorkDeps,
  signal: AbortSignal,
): Promise<void> {
  const listed = await deps.jobs.listDistinctIds(projectId, uuid, { limit: personDistinctIdCountMax + 1 })
  const distinctIds = (listed?.results ?? []).map(({ distinctId }) => ({ projectId, distinctId }))
  const split = async (loaded: LoadedChunk, published: JobBatch['publishedOverrides']) => {
    const person = loaded.persons.find(row => row.uuid === uuid)
    const ids = loaded.personMappings.flatMap(row => (row.personUuid === uuid ? row.distinctId : []))
    // Since the request, the person may have been merged or erased.
    const isStill = ids.length > 1 && ids.length <= personDistinctIdCountMax && ids.includes(mainId)
    if (person === undefined || !isStill) return unchanged
    const batch = createBatch(projectId, loaded, published)
    const { found } = await findConnectedIds(projectId, ids, deps, signal)
    // After an abort, `findConnectedIds` may have stopped early, and a split made from only some of the events cannot be
    // made again.
    if (signal.aborted) return unchanged
    const read = (some: readonly string[]) => readHistory(batch, deps, { distinctIds: some })
    const history = await retryQuery(() => read(found.flat()), { random: deps.random, signal }).catch(
      (cause: unknown) => {
        if (!isQueryFailure(cause) || signal.aborted) throw cause
        // Without readable events the ids are still separated; the person's values stay with the main id.
        return read([])
      },
    )
    const atMs = Math.max(deps.clock.nowMs(), ...history.items.slice(-1).map(item => item.atMs + 1))
    const uuids = await chooseUuids(projectId, uuid, mainId, ids, deps)
    const splits = ids.map((distinctId): SplitDistinctId => {
      return { projectId, distinctId, personUuid: uuids.get(distinctId)!, createdAtMs: person.createdAtMs, atMs }
    })
    return splitPerson({ ...batch, person, history, splits })
  }
  await runJobBatch(
    deps,
    signal,
    distinctIds.length === 0 ? [] : [uuid],
    () => ({ distinctIds, mergingDistinctIds: distinctIds, groups: [], projectIds: [projectId] }),
    (_, loaded, published) => split(loaded, published),
  )
}

/** The main id keeps the person's uuid; no other id gets a uuid that another person has. */
async function chooseUuids(
  projectId: number,
  uuid: string,
  mainId: string,
  ids: readonly string[],
  { jobs }: ImportWorkDeps,
): Promise<ReadonlyMap<string, string>> {
  const uuids = new Map([[mainId, uuid]])
  let open = ids.filter(id => id !== mainId)
  for (let attempt = 0; open.length > 0; attempt++) {
    const wanted = new Map(open.map(id => [id, deriveSplitUuid(projectId, id, attempt)]))
    const taken = new Set(await jobs.findTakenUuids(projectId, [...wanted.values()]))
    for (const [id, each] of wanted) if (!taken.has(each)) uuids.set(id, each)
    open = open.filter(id => !uuids.has(id))
  }
  return uuids
}

async function rebuild(
  { id, projectId, request }: PersonRepair<RebuildRequest>,
  deps: ImportWorkDeps,
  signal: AbortSignal,
): Promise<void> {
  /**
   * Ids that were found connected with ids of earlier pages; they are not searched for again. A uuid takes 80 bytes here
   * until its page comes, so a project with 1,000,000 of them takes 80 MB at most.
   */
  const done = new Set<string>()
  const size = new BatchSize()
  let isFirst = true
  for await (const page of listIdPages(projectId, request, deps)) {
    if (signal.aborted) return
    const { found, unreadable } = await findConnectedIds(
      projectId,
      page.filter(each => !done.delete(each)),
      deps,
      signal,
    )
    const ofPage = new Set(page)
    for (const each of [...found, ...unreadable].flat()) if (!ofPage.has(each)) done.add(each)
    await saveReportPart({ ...emptyReport, unreadableIdCount: unreadable.flat().length }, 0)
    for (const units of groupIntoBatches(found, size)) await rebuildUnits(units)
  }

  async function saveReportPart(part: RepairReport, erasures: number): Promise<void> {
    await deps.jobs.addRepairReport(id, { ...part, erasures }, isFirst)
    isFirst = false
  }

  async function rebuildUnits(units: readonly (readonly string[])[]): Promise<void> {
    /** Keyed by the first unit of each (half) batch, as in `undoUnits`. */
    const parts = new Map<readonly string[], { part: RepairReport; share: number; erasures: number }>()
    await runJobBatch(
      deps,
      signal,
      units,
      some => {
        const distinctIds = some.flat().map(distinctId => ({ projectId, distinctId }))
        return { distinctIds, mergingDistinctIds: distinctIds, groups: [], projectIds: [projectId] }
      },
      async (some, loaded, published) => {
        const ids = some.flat()
        const openIds = new Set<unknown>(await findNewlyLinkedIds(projectId, ids, deps))
        const batch = createBatch(projectId, loaded, published)
        const { events, share, ...history } = await readHistory(batch, deps, { distinctIds: ids })
        const idsWithEvents = new Set(events.map(({ distinctId }) => distinctId))
        const wanted = foldHistory(history)
        const { changes, overrides } = applyHistoryDifference({ ...batch, wanted, idsWithEvents, openIds })
        const unreadableIdCount = some.filter(unit => unit.some(id => openIds.has(id))).flat().length
        const part = { ...buildReport(changes, loaded), idCount: ids.length - unreadableIdCount, unreadableIdCount }
        parts.set(some[0]!, { part, share, erasures: loaded.erasures?.get(projectId) ?? 0 })
        return request.applies ? { changes, overrides } : unchanged
      },
      ([unit], { erasures }) => {
        const part = { ...emptyReport, unreadableIdCount: unit!.length }
        parts.set(unit!, { part, share: 1, erasures: erasures?.get(projectId) ?? 0 })
        return unchanged
      },
    )
    for (const { part, erasures } of parts.values()) await saveReportPart(part, erasures)
    const share = parts.values().reduce((sum, each) => sum + each.share, 0)
    size.learn(share, units.flat().length)
  }
}

function createBatch(
  projectId: number,
  loaded: LoadedChunk,
  publishedOverrides: JobBatch['publishedOverrides'],
): JobBatch {
  return { importJobId: noJobId, projectId, loaded, ...omitUndefined({ publishedOverrides }) }
}

async function* listIdPages(
  projectId: number,
  { persons }: RebuildRequest,
  { jobs }: ImportWorkDeps,
): AsyncGenerator<readonly string[]> {
  if (persons !== null) {
    const ids = new Set(persons.distinctIds)
    for (const uuid of persons.uuids) {
      const listed = await jobs.listDistinctIds(projectId, uuid, { limit: personDistinctIdCountMax + 1 })
      for (const { distinctId } of listed?.results ?? []) ids.add(distinctId)
      if (ids.size < pageSize) continue
      yield [...ids]
      ids.clear()
    }
    yield [...ids]
    return
  }
  for (let after: string | null = null; ; ) {
    const page: readonly string[] = await jobs.listProjectDistinctIds(projectId, after, pageSize)
    yield page
    if (page.length === 0) return
    after = page.at(-1)!
  }
}

function buildReport({ persons, mappings, imports }: PublishedBatch['changes'], loaded: LoadedChunk): RepairReport {
  const removed = imports?.removedPersons ?? []
  const removedMappings = imports?.removedMappings ?? []
  const before = new Map(loaded.persons.map(person => [person.uuid, person]))
  const ownerOf = new Map([...loaded.mappings, ...loaded.personMappings].map(row => [row.distinctId, row.personUuid]))
  const moved = [...mappings.map(({ row }) => row.distinctId), ...removedMappings.map(({ distinctId }) => distinctId)]
  const gained = Map.groupBy(mappings, ({ row }) => row.personUuid)
  const lost = Map.groupBy(moved, distinctId => ownerOf.get(distinctId) ?? '')
  const listGainedIds = (uuid: string) =>
    (gained.get(uuid) ?? []).map(({ row }) => row.distinctId).slice(0, reportedKeysMax)
  const written = new Set(persons.map(({ row }) => row.uuid))
  const samples: RepairSample[] = [
    ...removed.map(({ uuid }) => {
      const distinctIds = (lost.get(uuid) ?? []).slice(0, reportedKeysMax)
      return { uuid, change: 'removed' as const, keys: [], distinctIds }
    }),
    ...persons.map(({ row, loadedVersion }) => {
      const keys = listChangedKeys(before.get(row.uuid), row).slice(0, reportedKeysMax)
      const change = loadedVersion === null ? ('created' as const) : ('changed' as const)
      return { uuid: row.uuid, change, keys, distinctIds: listGainedIds(row.uuid) }
    }),
    // Persons whose only change is that they get other distinct ids.
    ...[...gained.keys()]
      .filter(uuid => !written.has(uuid))
      .map(uuid => ({ uuid, change: 'changed' as const, keys: [], distinctIds: listGainedIds(uuid) })),
  ]
  const countOf = (change: RepairSample['change']) => samples.filter(each => each.change === change).length
  return {
    ...emptyReport,
    changedCount: countOf('changed'),
    createdCount: countOf('created'),
    removedCount: countOf('removed'),
    movedIdCount: moved.length,
    samples: samples.slice(0, reportedPersonsMax),
  }
}

/** Names of the changed properties, and of the changed fields in the private API. */
function listChangedKeys(before: Person | undefined, after: Person): string[] {
  const names = new Set([...Object.keys(before?.properties ?? {}), ...Object.keys(after.properties)])
  const keys = [...names].filter(key => !isSameJson(before?.properties[key], after.properties[key]))
  if (before === undefined) return keys
  if (before.createdAtMs !== after.createdAtMs) keys.push('created_at')
  if (before.isIdentified !== after.isIdentified) keys.push('is_identified')
  if (before.lastSeenAtMs !== after.lastSeenAtMs) keys.push('last_seen_at')
  return keys
}
