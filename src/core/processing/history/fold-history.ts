// Rebuilds persons and groups from their stored events, by the functions that processed the events when they arrived: a
// person is a fold over the events of its ids. Pure.

import { groupEventNames, mergeEventNames } from '#core/events/event-names.ts'
import { readGroupIdentity } from '#core/events/group-identity.ts'
import type { GroupType } from '#core/groups/group.ts'
import { toStagingId } from '#core/imports/import-job.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { noKeys } from '#core/persons/profile.ts'
import { ProjectState } from '#core/processing/chunk-state.ts'
import { applyGroupEvent } from '#core/processing/group-update.ts'
import { joinGroups, joinLinks, joinPersonlessIds, joinPersons } from '#core/processing/imports/publish-staging.ts'
import { applyPersonEvent } from '#core/processing/person-step.ts'
import { unsetKeys } from '#core/processing/properties/person-update.ts'
import type { Project } from '#core/project.ts'
import type { HistoryItem, ReadEvent } from './historic-event.ts'

export interface History {
  readonly project: Project
  /** Those of the project, by today's names. */
  readonly groupTypes: readonly GroupType[]
  /** What to rebuild: the events hold everything about these only. */
  readonly of: 'persons' | 'groups'
  readonly items: readonly HistoryItem[]
}

/** @returns the persons or groups that the events make. */
export function foldHistory(history: History): ProjectState {
  const state = openHistory(history)
  for (const item of history.items) applyItem(state, item, history)
  return state
}

/** @returns what the events make with those of an import job, and without them. */
export function foldWithAndWithout(
  history: History,
  importJobId: number,
): { with: ProjectState; without: ProjectState } {
  const isOfJob = ({ job, event }: HistoryItem) => (job === null ? event.importJobId : job.id) === importJobId
  const found = history.items.findIndex(isOfJob)
  const first = found === -1 ? history.items.length : found
  const state = openHistory(history)
  for (const item of history.items.slice(0, first)) applyItem(state, item, history)
  const without = state.copy()
  for (const item of history.items.slice(first)) {
    applyItem(state, item, history)
    if (!isOfJob(item)) applyItem(without, item, history)
  }
  return { with: state, without }
}

function openHistory({ project, groupTypes }: History): ProjectState {
  const state = new ProjectState(project)
  for (const type of groupTypes) state.loadGroupType(type)
  return state
}

function applyItem(state: ProjectState, item: HistoryItem, { of }: History): void {
  const apply = of === 'persons' ? applyToPerson : applyToGroup
  if (item.job === null) apply(state, item.event)
  else {
    const staging = new ProjectState(state.project, { id: toStagingId(item.job.id), of: state })
    for (const event of item.events) apply(staging, event)
    publish(state, staging, item.job)
  }
}

/** In the order of the steps of `services/imports/publish-job.ts`. */
function publish(state: ProjectState, staging: ProjectState, { id, options }: NonNullable<HistoryItem['job']>): void {
  const links = staging.links
    .map(link => ({ ...link, importJobId: id }))
    .sort((a, b) => a.timestampMs - b.timestampMs || (a.uuid < b.uuid ? -1 : 1))
  joinLinks(state, links, [])
  const distinctIds = [...staging.mappings.keys()].sort()
  const staged = distinctIds.map(distinctId => [distinctId, staging.findPerson(distinctId)!] as const)
  joinPersons(state, staged, options, [])
  joinPersonlessIds(state, staging.newPersonlessIds)
  const groups = staging.changedGroups().map(({ row }) => row)
  const typeNames = new Map(staging.usedGroupTypes().map(({ index, name }) => [index, name]))
  joinGroups(state, groups, typeNames, [])
}

/** As `apply-event.ts` does it, from what the row has kept. */
function applyToPerson(state: ProjectState, row: ReadEvent): void {
  const { distinctId, linkedId, event, timestampMs, uuid, importJobId, historicalMigration: historical, changes } = row
  if (!hasProfile(row)) {
    if (state.findPerson(distinctId) === undefined) state.rememberPersonless(distinctId)
    return
  }
  const isOfGroup = groupEventNames.has(event)
  const update = {
    distinctId,
    merge: linkedId === '' ? null : { otherId: linkedId, dangerously: event === '$merge_dangerously' },
    set: isOfGroup ? null : objectOf(changes.$set),
    setOnce: isOfGroup ? null : objectOf(changes.$set_once),
    unset: isOfGroup ? noKeys : unsetKeys(changes.$unset),
    writesKnownPersons: event !== '$exception' || historical,
    writesFilteredKeys: event === '$set' || mergeEventNames.has(event),
  }
  applyPersonEvent(state, { ...update, timestampMs, uuid, importJobId, historical }, ignoreWarning)
}

function applyToGroup(state: ProjectState, row: ReadEvent): void {
  if (!hasProfile(row)) return
  const { timestampMs, uuid, importJobId, historicalMigration: historical, changes } = row
  const identity = readGroupIdentity(changes)
  if (identity === null) return
  applyGroupEvent(state, {
    ...{ ...identity, timestampMs, uuid, importJobId, historical },
    set: changes.$group_set,
    unset: historical ? unsetKeys(changes.$group_unset) : noKeys,
  })
}

/** Whether the event changed its person and groups: an event of the AI lane only reads its person. */
function hasProfile({ personMode, lane }: ReadEvent): boolean {
  return personMode === 'full' && lane !== 'ai'
}

function objectOf(value: JsonValue | undefined): JsonObject | null {
  return value !== undefined && isJsonObject(value) ? value : null
}

function ignoreWarning(): void {}
