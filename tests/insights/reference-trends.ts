// Counts trends by a plain program over the events that were accepted: no SQL, and nothing of the code that makes ranges
// and buckets. Only the matcher of flags is shared, since that is what filters have to mean.

import type { StoredEvent } from '#core/events/stored-event.ts'
import { compilePropertyMatch } from '#core/flags/match/match-property.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, parseJson, readJsonNumber } from '#core/json.ts'

export interface World {
  readonly zone: string
  readonly weekStartDay: 0 | 1
  readonly nowMs: number
  /** In the order in which they were stored. */
  readonly copies: StoredEvent[]
  readonly overrides: { distinctId: string; personId: string; version: number }[]
  /** Persons and groups of today. */
  readonly persons: Map<string, JsonObject>
  readonly groups: Map<string, JsonObject>
  /** Members of a cohort by its id: listed, or described by filters on persons. */
  readonly cohorts: Map<number, { readonly listed?: ReadonlySet<string>; readonly tree?: JsonObject }>
}

export interface CountedEvent {
  readonly event: StoredEvent
  readonly person: string
  readonly properties: JsonObject
  readonly personProperties: JsonObject
}

export interface ReferenceLine {
  /** Distinguishes the values that can have a line. */
  readonly key?: string
  readonly value: string
  readonly data: readonly number[]
}

/** Each identity once: a live copy wins over an imported one, a later over an earlier. */
export function countedEvents(world: World): CountedEvent[] {
  const winners = new Map<string, StoredEvent>()
  for (const copy of world.copies) {
    const day = new Date(copy.timestampMs).toISOString().slice(0, 10)
    const key = JSON.stringify([day, copy.event, copy.distinctId, copy.uuid])
    const held = winners.get(key)
    if (held !== undefined && held.importJobId === 0 && copy.importJobId > 0) continue
    winners.set(key, copy)
  }
  const personOf = new Map<string, { personId: string; version: number }>()
  for (const override of world.overrides) {
    const held = personOf.get(override.distinctId)
    if (held === undefined || override.version >= held.version) personOf.set(override.distinctId, override)
  }
  return [...winners.values()].map(event => ({
    event,
    person: personOf.get(event.distinctId)?.personId ?? event.personId,
    properties: parseJson(event.propertiesJson) as JsonObject,
    personProperties: parseJson(event.personPropertiesJson) as JsonObject,
  }))
}

// biome-ignore lint/suspicious/noExplicitAny: a query as it was sent
type Sent = any

const partsOf = new Map<string, Intl.DateTimeFormat>()

/** `2026-03-29 01:30`, by the wall clock of the zone. */
export function wallOf(ms: number, zone: string): string {
  let format = partsOf.get(zone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('sv-SE', {
      ...{ timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' },
      ...{ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
    })
    partsOf.set(zone, format)
  }
  return format.format(ms)
}

const dayMs = 86_400_000

/** Adds days to `2026-03-29`. */
function plusDays(day: string, count: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + count * dayMs).toISOString().slice(0, 10)
}

function weekStart(day: string, first: number): string {
  return plusDays(day, -((new Date(`${day}T00:00:00Z`).getUTCDay() - first + 7) % 7))
}

function monthsBack(day: string, count: number): string {
  const month = Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1 - count
  return `${String(Math.floor(month / 12)).padStart(4, '0')}-${String((month % 12) + 1).padStart(2, '0')}-01`
}

/** The names of all buckets, and the place of an instant's bucket among them (-1 for none). */
export function bucketsOf(world: World, query: Sent, events: readonly CountedEvent[]) {
  const { zone, nowMs, weekStartDay } = world
  const interval = query.interval ?? 'day'
  const today = wallOf(nowMs, zone).slice(0, 10)
  const { date_from: from = '-7d', date_to: to } = query.dateRange ?? {}
  const earliest = events.length === 0 ? nowMs : Math.min(...events.map(({ event }) => event.timestampMs))
  const dayOfText = (text: string): string => {
    const span = /^-?(\d*)([dwmy])(Start)?$/.exec(text)
    if (span === null) return text
    const count = Number(span[1] || 0)
    if (span[2] === 'd') return plusDays(today, -count)
    if (span[2] === 'w') return plusDays(today, -7 * count)
    if (span[2] === 'y') return `${Number(today.slice(0, 4)) - count}-01-01`
    return monthsBack(today, count)
  }
  if (interval === 'hour') {
    const hours = /^-(\d+)h$/.exec(from)
    // Only zones whose hours begin when UTC hours do can repeat hours.
    const startMs = hours === null ? null : Math.floor((nowMs - Number(hours[1]) * 3_600_000) / 3_600_000) * 3_600_000
    const firstDay = startMs === null ? dayOfText(from) : wallOf(startMs, zone).slice(0, 10)
    const lastDay = to === undefined ? today : dayOfText(to)
    const lastHour = to === undefined ? wallOf(nowMs, zone).slice(0, 13) : `${lastDay} 99`
    const names: string[] = []
    const places = new Map<string, number>()
    const keyOf = (ms: number) => {
      const hour = wallOf(ms, zone).slice(0, 13)
      return `${hour}${wallOf(ms - 3_600_000, zone).slice(0, 13) === hour ? ' again' : ''}`
    }
    for (
      let ms = Date.parse(`${firstDay}T00:00:00Z`) - dayMs;
      ms < Date.parse(`${lastDay}T00:00:00Z`) + 2 * dayMs;
      ms += 900_000
    ) {
      const hour = wallOf(ms, zone).slice(0, 13)
      if (
        hour.slice(0, 10) < firstDay ||
        hour.slice(0, 10) > lastDay ||
        hour > lastHour ||
        (startMs !== null && ms < startMs)
      )
        continue
      if (places.has(keyOf(ms))) continue
      places.set(keyOf(ms), names.length)
      names.push(`${hour}:00:00`)
    }
    return {
      names,
      firstDay,
      lastDay,
      placeOf: (ms: number) => (startMs !== null && ms < startMs ? -1 : (places.get(keyOf(ms)) ?? -1)),
    }
  }
  const startOf = (day: string) =>
    interval === 'week' ? weekStart(day, weekStartDay) : interval === 'month' ? monthsBack(day, 0) : day
  let firstDay = from === 'all' ? wallOf(earliest, zone).slice(0, 10) : dayOfText(from)
  if (interval === 'month') firstDay = monthsBack(firstDay, 0)
  const lastDay = to === undefined ? today : dayOfText(to)
  const names: string[] = []
  for (let day = firstDay; day <= lastDay; day = plusDays(day, 1))
    if (names.at(-1) !== startOf(day)) names.push(startOf(day))
  return {
    names,
    firstDay,
    lastDay,
    placeOf: (ms: number) => {
      const day = wallOf(ms, zone).slice(0, 10)
      return day < firstDay || day > lastDay ? -1 : names.indexOf(startOf(day))
    },
  }
}

/** The query of the period that `query` is compared with: as many days, weeks or months before, or `compare_to`. */
export function previousQuery(world: World, query: Sent, events: readonly CountedEvent[]): Sent {
  const { names, firstDay, lastDay } = bucketsOf(world, query, events)
  const { date_from: from = '-7d', date_to: to } = query.dateRange ?? {}
  const days = query.interval === 'day' && to === undefined ? Number(/^-(\d+)d$/.exec(from)?.[1] ?? 0) : 0
  // Of whole weeks until today, which is one day more.
  const weeks = query.compareFilter.compare_to === '-1w' ? 1 : days % 7 === 0 ? days / 7 : 0
  const count = names.length
  const range = (date_from: string, date_to: string) => ({ ...query, dateRange: { date_from, date_to } })
  if (query.interval !== 'month') {
    const back = weeks > 0 ? 7 * weeks : query.interval === 'week' ? 7 * count : count
    return range(plusDays(firstDay, -back), plusDays(lastDay, -back))
  }
  // A month that is half over is compared with half a month, and a whole one with a whole one.
  const monthEnd = (day: string) => plusDays(monthsBack(day, -1), -1)
  const earlierMonth = monthsBack(lastDay, count)
  const sameDay = plusDays(earlierMonth, Number(lastDay.slice(8)) - 1)
  const end = monthEnd(earlierMonth)
  return range(monthsBack(firstDay, count), lastDay === monthEnd(lastDay) || sameDay > end ? end : sameDay)
}

/**
 * The lines of one series, in their order.
 * @param values the `key` of each value that has a line; without them, those whose figures sum up to most have.
 */
export function referenceLines(
  world: World,
  query: Sent,
  series: Sent,
  events: readonly CountedEvent[],
  values?: readonly string[],
): ReferenceLine[] {
  const { names, placeOf } = bucketsOf(world, query, events)
  const places = new Map(events.map(one => [one, placeOf(one.event.timestampMs)]))
  const matched = events.filter(
    one =>
      (series.event === null || one.event.event === series.event) &&
      places.get(one)! >= 0 &&
      holds(world, one, query.properties ?? []) &&
      holds(world, one, series.properties ?? []),
  )
  const dataOf = (some: readonly CountedEvent[]) => {
    const perPlace: CountedEvent[][] = names.map(() => [])
    for (const one of some) perPlace[places.get(one)!]!.push(one)
    return perPlace.map(own => figureOf(series, own))
  }
  const filter = query.breakdownFilter
  if (filter === undefined) return [{ value: '', data: dataOf(matched) }]
  if (filter.breakdown_type === 'cohort') {
    return filter.breakdown.map((id: number | 'all') => ({
      value: id === 'all' ? 'all' : String(id),
      data: dataOf(matched.filter(one => id === 'all' || isMember(world, one.person, id))),
    }))
  }
  const by: Sent[] = filter.breakdowns ?? [
    { property: filter.breakdown, type: filter.breakdown_type, group_type_index: filter.breakdown_group_type_index },
  ]
  const textsOf = (one: CountedEvent) =>
    by.map(({ property, type, group_type_index: index }) => shownText(read(world, one, type, property, index)))
  const perValue = new Map<string, CountedEvent[]>()
  for (const one of matched) {
    const key = JSON.stringify(textsOf(one))
    perValue.set(key, [...(perValue.get(key) ?? []), one])
  }
  const none = JSON.stringify(by.map(() => ''))
  const ranked = [...perValue.keys()].filter(key => key !== none)
  const totals = new Map(ranked.map(key => [key, dataOf(perValue.get(key)!).reduce((sum, figure) => sum + figure, 0)]))
  const bytes = (key: string) => (JSON.parse(key) as string[]).map(text => Buffer.from(text))
  ranked.sort((a, b) => {
    const byTotal = totals.get(b)! - totals.get(a)!
    if (byTotal !== 0) return byTotal
    const [left, right] = [bytes(a), bytes(b)]
    return (
      Buffer.compare(left[0]!, right[0]!) || Buffer.compare(left[1] ?? Buffer.alloc(0), right[1] ?? Buffer.alloc(0))
    )
  })
  const limit = filter.breakdown_limit ?? 25
  const name = (key: string) => {
    const texts = (JSON.parse(key) as string[]).map(text => (text === '' ? '$$_posthog_breakdown_null_$$' : text))
    return JSON.stringify(filter.breakdowns === undefined ? texts[0] : texts)
  }
  const other = '$$_posthog_breakdown_other_$$'
  const otherName = JSON.stringify(filter.breakdowns === undefined ? other : by.map(() => other))
  const shown = values ?? ranked.slice(0, limit)
  const lines: ReferenceLine[] = []
  for (const key of shown)
    if (perValue.has(key)) lines.push({ key, value: name(key), data: dataOf(perValue.get(key)!) })
  if (perValue.has(none)) lines.push({ value: name(none), data: dataOf(perValue.get(none)!) })
  const others = ranked.filter(key => !shown.includes(key)).flatMap(key => perValue.get(key)!)
  if (others.length > 0) lines.push({ value: otherName, data: dataOf(others) })
  return lines
}

function figureOf(series: Sent, events: readonly CountedEvent[]): number {
  const math: string = series.math ?? 'total'
  if (math === 'total') return events.length
  if (math === 'dau') return new Set(events.map(({ person }) => person)).size
  if (math === 'unique_group') {
    return new Set(events.map(({ event }) => event.groups[series.math_group_type_index]).filter(key => key !== '')).size
  }
  const numbers = events.flatMap(({ properties }) => {
    const value = getOwnValue(properties, series.math_property)
    const number =
      typeof value === 'string' && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value)
        ? Number(value)
        : value === undefined
          ? undefined
          : readJsonNumber(value)
    return number !== undefined && Math.abs(number) <= 1e300 ? [number] : []
  })
  if (numbers.length === 0) return 0
  numbers.sort((a, b) => a - b)
  const sum = numbers.reduce((total, number) => total + number, 0)
  if (math === 'sum') return sum
  if (math === 'avg') return sum / numbers.length
  if (math === 'min') return numbers[0]!
  if (math === 'max') return numbers.at(-1)!
  const share = math === 'median' ? 0.5 : Number(math.slice(1)) / 100
  const rank = (numbers.length - 1) * share
  const low = numbers[Math.floor(rank)]!
  const high = numbers[Math.ceil(rank)]!
  return low + (high - low) * (rank - Math.floor(rank))
}

function shownText(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  const number = readJsonNumber(value)
  return number === undefined ? JSON.stringify(value) : String(number).replace('e+', 'e')
}

function read(world: World, one: CountedEvent, type: string, key: string, index: number): JsonValue | undefined {
  if (type === 'person') return getOwnValue(one.personProperties, key)
  if (type === 'group') {
    const groupKey = one.event.groups[index]!
    if (key === '$group_key') return groupKey === '' ? undefined : groupKey
    return getOwnValue(world.groups.get(`${index} ${groupKey}`) ?? {}, key)
  }
  return key.startsWith('$feature/') ? one.event.flags.get(key) : getOwnValue(one.properties, key)
}

function holds(world: World, one: CountedEvent, filters: Sent): boolean {
  if (Array.isArray(filters)) return filters.every(filter => holds(world, one, filter))
  if (filters.values !== undefined) {
    const test = (entry: Sent) => holds(world, one, entry)
    return filters.type === 'OR' ? filters.values.some(test) : filters.values.every(test)
  }
  if (filters.type === 'cohort') return isMember(world, one.person, filters.value) === (filters.operator !== 'not_in')
  const value = read(world, one, filters.type, filters.key, filters.group_type_index)
  const isList =
    Array.isArray(filters.value) &&
    !/^(?:exact|is_not|is_set|is_not_set|(?:not_)?between|.*_multi)$/.test(filters.operator)
  if (!isList) return matches(value, filters, world, 2)
  const holdsOf = (wanted: Sent) => matches(value, { ...filters, value: wanted }, world, 2)
  return filters.operator.startsWith('not_') ? filters.value.every(holdsOf) : filters.value.some(holdsOf)
}

/** @param version of filters 2, of cohorts that of the project. */
function matches(value: JsonValue | undefined, filter: Sent, { zone, nowMs }: World, version: 1 | 2): boolean {
  const settings = { timezone: zone, propertyMatchingVersion: version } as const
  const compiled = compilePropertyMatch(filter.operator ?? 'exact', filter.value ?? null, settings)!
  if (value === undefined) return compiled.whenAbsent
  const answer = compiled.matches(value, nowMs)
  if (typeof answer === 'boolean') return answer
  let step = answer.next()
  while (!step.done) step = answer.next()
  return step.value
}

function isMember(world: World, person: string, cohortId: number): boolean {
  const { listed, tree } = world.cohorts.get(cohortId)!
  if (listed !== undefined) return listed.has(person)
  const properties = world.persons.get(person)
  const test = (entry: Sent): boolean => {
    if (entry.type === 'AND') return entry.values.every(test)
    if (entry.type === 'OR') return entry.values.some(test)
    const isTrue =
      entry.type === 'cohort'
        ? isMember(world, person, entry.value)
        : matches(getOwnValue(properties!, entry.key), entry, world, 1)
    return isTrue !== (entry.negation === true)
  }
  return properties !== undefined && isJsonObject(tree) && test(tree)
}
