// Rebuilds persons and groups from their stored events, by the functions that processed the events when they arrived: a
// person is a fold over the events of its ids. Pure.

import { groupEventNames, mergeEventNames } from '#core/events/event-names.ts'
import { readGroupIdentity } from '#core/events/group-identity.ts'
import type { GroupType } from '#core/groups/group.ts'
import { toStagingProjectId } from '#core/imports/import-job.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import type { SplitDistinctId } from '#core/persons/person-repair.ts'
import { emptyProfile, noKeys } from '#core/persons/profile.ts'
import { applyEventWithoutLink, applyPersonEvent } from '#core/processing/apply-person-event.ts'
import { ProjectState } from '#core/processing/chunk-state.ts'
import { applyGroupEvent } from '#core/processing/group-update.ts'
import {
  addPersonlessIds,
  applyImportLinks,
  mergeStagedGroups,
  mergeStagedPersons,
} from '#core/processing/imports/publish-staging.ts'
import { isIllegalDistinctId } from '#core/processing/person-merge.ts'
import { parseUnsetKeys } from '#core/processing/properties/person-update.ts'
import type { Project } from '#core/project.ts'
import type { HistoryItem, ParsedHistoricEvent } from './historic-event.ts'

export interface History {
  readonly project: Project
  /** The project's group types, by their current names. */
  readonly groupTypes: readonly GroupType[]
  /** Whether persons or groups are rebuilt; the history is complete for the chosen kind only. */
  readonly of: 'persons' | 'groups'
  readonly items: readonly HistoryItem[]
  /** The splits of the persons' distinct ids. */
  readonly splits?: readonly SplitDistinctId[]
}

/** A split of a distinct id comes before the events of the same millisecond. */
type Step = HistoryItem | { readonly atMs: number; readonly split: SplitDistinctId }

/** @returns the persons or groups that the events make. */
export function foldHistory(history: History): ProjectState {
  const fold = new Fold(history)
  const state = fold.open()
  for (const step of fold.steps) fold.apply(state, step)
  return state
}

/** @returns the persons or groups that the events make, once with an import job's events and once without them. */
export function foldHistoryWithAndWithoutJob(
  history: History,
  importJobId: number,
): { with: ProjectState; without: ProjectState } {
  const isOfJob = (step: Step) =>
    !('split' in step) && (step.job === null ? step.event.importJobId : step.job.id) === importJobId
  const fold = new Fold(history)
  const { steps } = fold
  const found = steps.findIndex(isOfJob)
  const first = found === -1 ? steps.length : found
  const state = fold.open()
  for (const step of steps.slice(0, first)) fold.apply(state, step)
  const without = state.copy()
  for (const step of steps.slice(first)) {
    fold.apply(state, step)
    if (!isOfJob(step)) fold.apply(without, step)
  }
  return { with: state, without }
}

class Fold {
  readonly steps: readonly Step[]
  readonly #history: History
  readonly #splitAtMs: ReadonlyMap<string, number>

  constructor(history: History) {
    const { items, splits = [] } = history
    this.#history = history
    this.#splitAtMs = new Map(splits.map(({ distinctId, atMs }) => [distinctId, atMs]))
    const splitSteps = splits.map(split => ({ atMs: split.atMs, split }))
    this.steps = splits.length === 0 ? items : [...splitSteps, ...items].sort((a, b) => a.atMs - b.atMs)
  }

  open(): ProjectState {
    const { project, groupTypes, splits = [] } = this.#history
    const state = new ProjectState(project)
    for (const type of groupTypes) state.loadGroupType(type)
    for (const { distinctId, personUuid } of splits) state.replaceUuid(distinctId, personUuid)
    return state
  }

  apply(state: ProjectState, step: Step): void {
    if ('split' in step) {
      applySplit(state, step.split)
      return
    }
    const isSplit = (distinctId: string, otherId: string) => this.#isSplit([distinctId, otherId], step.atMs)
    const applyEvent = this.#history.of === 'persons' ? applyToPerson : applyToGroup
    if (step.job === null) applyEvent(state, step.event, isSplit(step.event.distinctId, step.event.linkedId))
    else {
      const staging = new ProjectState(state.project, { id: toStagingProjectId(step.job.id), of: state })
      for (const event of step.events) applyEvent(staging, event, false)
      publish(state, staging, step.job, isSplit)
    }
  }

  /** Whether a link between the ids at this time is skipped, as if refused, because an id is split off later. */
  #isSplit(ids: readonly [string, string], atMs: number): boolean {
    const isSplitLater = (id: string) => (this.#splitAtMs.get(id) ?? Number.NEGATIVE_INFINITY) > atMs
    return ids[0] !== ids[1] && ids.some(isSplitLater) && !ids.some(isIllegalDistinctId)
  }
}

/** A distinct id that was split off has a separate person from its first event on, at the latest from the split on. */
function applySplit(state: ProjectState, { distinctId, personUuid, createdAtMs }: SplitDistinctId): void {
  if (state.mappings.has(distinctId)) return
  const person = state.createPerson(personUuid, emptyProfile, createdAtMs, false)
  state.attach(distinctId, person, state.versionFor(distinctId, personUuid))
}

/** Publishes a job in the order of the steps of `services/imports/publish-job.ts`. */
function publish(
  state: ProjectState,
  staging: ProjectState,
  { id, options }: NonNullable<HistoryItem['job']>,
  isSplit: (distinctId: string, otherId: string) => boolean,
): void {
  const links = staging.links
    .map(link => ({ ...link, importJobId: id }))
    .sort((a, b) => a.timestampMs - b.timestampMs || (a.uuid < b.uuid ? -1 : 1))
  applyImportLinks(state, links, [], ({ distinctId, otherId }) => isSplit(distinctId, otherId))
  const distinctIds = [...staging.mappings.keys()].sort()
  const staged = distinctIds.map(distinctId => [distinctId, staging.findPerson(distinctId)!] as const)
  mergeStagedPersons(state, staged, options, [])
  addPersonlessIds(state, staging.newPersonlessIds)
  const groups = staging.changedGroups().map(({ row }) => row)
  const typeNames = new Map(staging.usedGroupTypes().map(({ index, name }) => [index, name]))
  mergeStagedGroups(state, groups, typeNames, [])
}

/** Applies an event to its person as `apply-event.ts` does, using only the fields that its row has kept. */
function applyToPerson(state: ProjectState, row: ParsedHistoricEvent, isSplit: boolean): void {
  const { distinctId, linkedId, event, timestampMs, uuid, importJobId, historicalMigration: historical, changes } = row
  if (!hasProfile(row)) {
    if (state.findPerson(distinctId) === undefined) state.rememberPersonless(distinctId)
    return
  }
  const isOfGroup = groupEventNames.has(event)
  const update = {
    distinctId,
    merge: linkedId === '' ? null : { otherId: linkedId, dangerously: event === '$merge_dangerously' },
    set: isOfGroup ? null : toObjectOrNull(changes.$set),
    setOnce: isOfGroup ? null : toObjectOrNull(changes.$set_once),
    unset: isOfGroup ? noKeys : parseUnsetKeys(changes.$unset),
    writesKnownPersons: event !== '$exception' || historical,
    writesFilteredKeys: event === '$set' || mergeEventNames.has(event),
  }
  const applyEvent = isSplit ? applyEventWithoutLink : applyPersonEvent
  applyEvent(state, { ...update, timestampMs, uuid, importJobId, historical }, ignoreWarning)
}

function applyToGroup(state: ProjectState, row: ParsedHistoricEvent): void {
  if (!hasProfile(row)) return
  const { timestampMs, uuid, importJobId, historicalMigration: historical, changes } = row
  const identity = readGroupIdentity(changes)
  if (identity === null) return
  applyGroupEvent(state, {
    ...{ ...identity, timestampMs, uuid, importJobId, historical },
    set: changes.$group_set,
    unset: historical ? parseUnsetKeys(changes.$group_unset) : noKeys,
  })
}

/** Whether the event changed its person and groups: an event of the AI lane only reads its person. */
function hasProfile({ personMode, lane }: ParsedHistoricEvent): boolean {
  return personMode === 'full' && lane !== 'ai'
}

function toObjectOrNull(value: JsonValue | undefined): JsonObject | null {
  return value !== undefined && isJsonObject(value) ? value : null
}

function ignoreWarning(): void {}
