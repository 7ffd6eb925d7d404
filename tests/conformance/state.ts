// Sets up what a vector expects in the instance before its request, as users would: definitions through the private
// API, persons, groups and overrides through events and evaluations. Never through a database.

import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { assertKnownFields, CannotRun, type Fields, isObject, show } from './compare.ts'
import { type Answer, jsonOf } from './exchange.ts'
import type { Instance } from './instance.ts'

const flagsPath = '/api/projects/@current/feature_flags/'
const cohortsPath = '/api/projects/@current/cohorts/'

/** A flag of a vector; fields that are not listed here are sent to the API unchanged. */
export interface FlagDefinition {
  /** The next free id when absent. */
  readonly id?: number
  readonly key: string
  /** 1 when absent. */
  readonly version?: number
  readonly deleted?: boolean
  readonly [field: string]: unknown
}

/** Changes settings of the project. @throws CannotRun for a setting that the project does not have. */
export async function changeProject(instance: Instance, settings: Fields): Promise<void> {
  if (Object.keys(settings).length === 0) return
  const changed = await instance.api<Fields>('PATCH', '/api/projects/@current/', settings)
  for (const name of Object.keys(settings)) {
    if (!Object.hasOwn(changed, name)) throw new CannotRun(`a project has no setting ${name}`)
    const value = settings[name]
    if (isObject(value)) assertKnownFields(value, `the setting ${name}`, Object.keys(changed[name] ?? {}))
  }
}

/** Quotas that are used up, by the names of `quotas` of a project. */
export function useUpQuotas(instance: Instance, names: readonly string[]): Promise<void> {
  return changeProject(instance, { quotas: Object.fromEntries(names.map(name => [name, 0])) })
}

/**
 * Creates flags with the ids and versions of the vector. Ids ascend from 1, so gaps are filled with flags that are
 * deleted again; version n takes n − 1 changes, of the name, since a write that changes nothing makes no version.
 */
export async function createFlags(instance: Instance, flags: readonly FlagDefinition[]): Promise<void> {
  let nextId = 1
  for (const flag of [...flags].sort((a, b) => Number(a.id ?? 0) - Number(b.id ?? 0))) {
    for (; nextId < Number(flag.id ?? nextId); nextId++) {
      await createFlag(instance, { key: `filler-${nextId}`, filters: { groups: [] } })
      await instance.api('DELETE', `${flagsPath}${nextId}/`)
    }
    const { id, version = 1, deleted = false, team_id: _ownProject, has_experiment = false, ...definition } = flag
    if (has_experiment === true) throw new CannotRun(`flag ${flag.key} is to have an experiment`)
    const changeCount = Number(version) - 1
    const named = (at: number) => (at === changeCount ? (definition.name ?? '') : `before change ${at + 1}`)
    const created = await createFlag(instance, changeCount === 0 ? definition : { ...definition, name: named(0) })
    nextId = created.id + 1
    if (id !== undefined && created.id !== Number(id)) {
      throw new CannotRun(`flag ${flag.key} got the id ${created.id} instead of ${show(id)}`)
    }
    for (let at = 1; at <= changeCount; at++) {
      await instance.api('PATCH', `${flagsPath}${created.id}/?skip_validation=true`, { name: named(at) })
    }
    if (deleted) await instance.api('DELETE', `${flagsPath}${created.id}/`)
  }
}

async function createFlag(instance: Instance, definition: Fields): Promise<{ id: number }> {
  const validated = await instance.call('POST', flagsPath, definition)
  const created =
    validated.status === 400
      ? await instance.api<Fields>('POST', `${flagsPath}?skip_validation=true`, definition)
      : (validated.json as Fields)
  if (validated.status !== 400 && validated.status >= 300) {
    throw new CannotRun(`POST ${flagsPath} answered ${validated.status} ${validated.text}`)
  }
  for (const [field, value] of Object.entries(definition)) {
    // Filters and the percentage next to them may be converted to a newer form; everything else is returned as sent.
    if (field === 'filters' || field === 'rollout_percentage') continue
    if (value === null) continue // is returned as the default that null selects
    const shownAs = field === 'evaluation_tags' ? 'evaluation_contexts' : field
    if (!isDeepStrictEqual(created[shownAs], value)) {
      throw new CannotRun(`the API did not take the field ${field} of flag ${show(definition.key)}`)
    }
  }
  return created as { id: number }
}

/** Creates cohorts with the ids of the vector; `definitions` maps ids to filters. */
export async function createCohorts(instance: Instance, definitions: Fields): Promise<void> {
  let nextId = 1
  for (const id of Object.keys(definitions)
    .map(Number)
    .sort((a, b) => a - b)) {
    for (; nextId < id; nextId++) {
      await instance.api('POST', cohortsPath, { name: `filler ${nextId}`, is_static: true })
      await instance.api('DELETE', `${cohortsPath}${nextId}/`)
    }
    const { is_static = false, ...filters } = definitions[id] as Fields
    if (is_static === true) assertKnownFields(filters, 'a static cohort', [])
    const cohort = { name: `cohort ${id}`, is_static, ...(is_static === true ? {} : { filters }) }
    const validated = await instance.call('POST', cohortsPath, cohort)
    if (validated.status === 400) await instance.api('POST', `${cohortsPath}?skip_validation=true`, cohort)
    else if (validated.status >= 300) {
      throw new CannotRun(`POST ${cohortsPath} answered ${validated.status} ${validated.text}`)
    }
    nextId = id + 1
  }
}

/** Makes the person of a distinct id a member of static cohorts. The person has to exist. */
export async function addToStaticCohorts(
  instance: Instance,
  cohortIds: readonly unknown[],
  distinctId: string,
): Promise<void> {
  for (const id of cohortIds) {
    const path = `${cohortsPath}${String(id)}/add_persons_to_static_cohort/`
    await instance.api('PATCH', path, { distinct_ids: [distinctId] })
  }
}

export interface SetUpEvent {
  readonly event: string
  readonly distinct_id: string
  readonly properties?: Fields
}

/** Captures events over the wire and waits until they are processed. */
export async function captureEvents(instance: Instance, events: readonly SetUpEvent[]): Promise<void> {
  if (events.length === 0) return
  const answer = await instance.send({
    method: 'POST',
    path: '/batch/',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      api_key: instance.projectKey,
      batch: events.map(({ event, distinct_id, properties = {} }) => ({
        event,
        properties: { ...properties, distinct_id, $geoip_disable: true },
      })),
    }),
  })
  if (answer.status !== 200) throw new CannotRun(`set-up events were answered ${answer.status} ${answer.text}`)
  await instance.caughtUp()
}

/** Events that create the person with these distinct ids and properties. */
export function personEvents(distinctIds: readonly string[], properties: Fields = {}): SetUpEvent[] {
  const [first, ...others] = distinctIds as [string, ...string[]]
  return [
    { event: 'set up', distinct_id: first, properties: { $set: properties } },
    ...others.map(other => ({ event: '$identify', distinct_id: first, properties: { $anon_distinct_id: other } })),
  ]
}

/** Events that create group types at their indexes (gaps are filled) and groups with their properties. */
export function groupEvents(typesByIndex: Readonly<Record<string, string>>, groups: Fields = {}): SetUpEvent[] {
  const indexes = Object.keys(typesByIndex).map(Number)
  const types = Array.from(
    { length: indexes.length === 0 ? 0 : Math.max(...indexes) + 1 },
    (_, index) => typesByIndex[index] ?? `filler-${index}`,
  )
  const identify = (type: string, key: string, properties: unknown): SetUpEvent => ({
    event: '$groupidentify',
    distinct_id: 'set-up',
    properties: { $group_type: type, $group_key: key, $group_set: properties },
  })
  return [
    ...types.map(type => identify(type, 'set-up', {})),
    ...Object.entries(groups).flatMap(([type, byKey]) =>
      Object.entries(byKey as Fields).map(([key, properties]) => identify(type, key, properties)),
    ),
  ]
}

export interface PersonSetUp {
  readonly distinctIds: readonly string[]
  readonly properties?: Fields
  /** Stored experience-continuity rows: flag key → hash key. */
  readonly overrides: ReadonlyMap<string, string>
}

/**
 * Creates persons and their continuity rows. Evaluating a continuity flag with an anonymous id writes a row, so for
 * each row its flag is made the only continuity flag for a moment, which raises the flags' versions.
 */
export async function createPersons(
  instance: Instance,
  persons: readonly PersonSetUp[],
  flags: readonly FlagDefinition[],
): Promise<void> {
  if (persons.every(({ overrides }) => overrides.size === 0)) {
    await captureEvents(
      instance,
      persons.flatMap(({ distinctIds, properties }) => personEvents(distinctIds, properties)),
    )
    return
  }
  await switchContinuity(instance, flags, () => false)
  for (const person of inOrderOfHashKeys(persons)) {
    await captureEvents(instance, personEvents(person.distinctIds, person.properties))
    for (const [flagKey, hashKey] of person.overrides) {
      await switchContinuity(instance, flags, key => key === flagKey)
      await logIn(instance, { distinct_id: person.distinctIds[0], $anon_distinct_id: hashKey })
    }
    await switchContinuity(instance, flags, () => false)
  }
  for (const { key, ensure_experience_continuity = false, active = true } of livingFlags(flags)) {
    await instance.api('PATCH', `${flagsPath}${key}/?skip_validation=true`, { ensure_experience_continuity, active })
  }
}

async function switchContinuity(
  instance: Instance,
  flags: readonly FlagDefinition[],
  isOn: (key: string) => boolean,
): Promise<void> {
  for (const { key } of livingFlags(flags)) {
    const patch = { ensure_experience_continuity: isOn(key), active: isOn(key) }
    await instance.api('PATCH', `${flagsPath}${key}/?skip_validation=true`, patch)
  }
}

function livingFlags(flags: readonly FlagDefinition[]): readonly FlagDefinition[] {
  return flags.filter(({ deleted }) => deleted !== true)
}

async function logIn(instance: Instance, request: Fields): Promise<void> {
  const answer = await evaluate(instance, { path: '/flags?v=2', request })
  if (answer.status !== 200) throw new CannotRun(`a set-up evaluation was answered ${answer.status} ${answer.text}`)
}

/** A question for flags. */
export interface FlagQuestion {
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly request: Fields
  readonly headers?: Readonly<Record<string, string>>
}

export function askForFlags(instance: Instance, { path, query = {}, request, headers }: FlagQuestion): Promise<Answer> {
  const more = Object.entries(query).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`)
  return instance.send({
    method: 'POST',
    path: path + more.join(''),
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ token: instance.projectKey, ...request }),
  })
}

/**
 * Requests flags, and again while some could not be computed: when a store does not answer in time, as on a busy
 * machine, those flags are missing, and rows of a log-in are not written until the next request.
 */
export async function evaluate(instance: Instance, question: FlagQuestion): Promise<Answer> {
  for (let times = 1; ; times++) {
    const answer = await askForFlags(instance, question)
    const body = jsonOf(answer.text)
    if (times === 20 || !isObject(body) || body.errorsWhileComputingFlags !== true) return answer
    await sleep(200)
  }
}

/**
 * A hash key that is another person's distinct id would give that person a row too, so its owner has to be created
 * later.
 */
function inOrderOfHashKeys(persons: readonly PersonSetUp[]): readonly PersonSetUp[] {
  const ordered: PersonSetUp[] = []
  const waiting = new Set(persons)
  while (waiting.size > 0) {
    const next = [...waiting].find(person =>
      [...waiting].every(
        other => other === person || ![...other.overrides.values()].some(key => person.distinctIds.includes(key)),
      ),
    )
    if (next === undefined) throw new CannotRun('the stored overrides of these persons cannot come about one by one')
    waiting.delete(next)
    ordered.push(next)
  }
  return ordered
}
