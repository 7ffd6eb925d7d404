// Which events of a batch a project's quotas leave out. Quotas are about live events: imports are outside all of them, and so
// are events that became imports by their age. Source: docs/wire/ingestion.md 5, 9; docs/wire/import.md 3.2.

import type { IncomingEvent } from '#core/capture/incoming-event.ts'
import type { PreparedEvents } from '#core/capture/prepare-events.ts'
import {
  type EventResource,
  productTourProperty,
  type QuotaResource,
  quotaResourceOf,
} from '#core/capture/quota-resource.ts'
import type { Lane } from '#core/events/captured-event.ts'
import { type EventGlance, filterEvents } from '#core/log/record-filter.ts'
import type { Project } from '#core/project.ts'
import { inSlices } from '../shared/in-slices.ts'

/** The quotas that are used up; never empty. */
export type UsedUp = ReadonlySet<EventResource>

export interface LeftOut {
  readonly count: number
  readonly countOf: ReadonlyMap<EventResource, number>
  /** In their order; of v0 requests, which are told of no more, at most `listedMax`. */
  readonly events: readonly LeftOutEvent[]
  /** For each record that there was in the main log, in order, 1 where the event was left out. */
  readonly marks: Uint8Array
}

export interface LeftOutEvent {
  readonly uuid: string
  readonly name: string
  readonly resource: EventResource
}

const listedMax = 20_000

const eventResources = ['events', 'exceptions', 'llm_events', 'survey_responses'] as const satisfies EventResource[]

/** Null when every quota has room, which is what each request asks. */
export function usedUpQuotas(
  project: Project,
  isOverQuota: (project: Project, resource: QuotaResource) => boolean,
): UsedUp | null {
  const { events, exceptions, llmEvents, surveyResponses } = project.quotas
  if (events === null && exceptions === null && llmEvents === null && surveyResponses === null) return null
  const usedUp = eventResources.filter(resource => isOverQuota(project, resource))
  return usedUp.length === 0 ? null : new Set(usedUp)
}

/** Gathers what is left out of one request. */
export class QuotaGate {
  readonly #usedUp: UsedUp
  readonly #protocol: 'v0' | 'v1'
  readonly #countOf = new Map<EventResource, number>()
  readonly #events: LeftOutEvent[] = []
  #count = 0

  constructor(usedUp: UsedUp, protocol: 'v0' | 'v1') {
    this.#usedUp = usedUp
    this.#protocol = protocol
  }

  /** Live events before they are encoded: those that may stay. */
  pass(events: readonly IncomingEvent[]): IncomingEvent[] {
    return events.filter(({ name, uuid, propertiesJson }) => {
      const hasTour = () => Object.hasOwn(JSON.parse(propertiesJson), productTourProperty)
      const resource = this.#quotaThatLeavesOut(quotaResourceOf(name, hasTour))
      if (resource !== null) this.#note(resource, () => ({ uuid: uuid ?? '', name, resource }))
      return resource === null
    })
  }

  async filter(prepared: PreparedEvents): Promise<{ kept: PreparedEvents; leftOut: LeftOut }> {
    const acceptedByLane = { ...prepared.acceptedByLane }
    const { main } = prepared
    // The other log has nothing but imports.
    const marks = new Uint8Array(main?.recordCount ?? 0)
    let looked = 0
    const keeps = (event: EventGlance) => {
      const isKept = this.#keeps(event, acceptedByLane)
      marks[looked++] = isKept ? 0 : 1
      return isKept
    }
    const kept = main === null ? null : await inSlices(filterEvents(main, keeps))
    const leftOut = { count: this.#count, countOf: this.#countOf, events: this.#events, marks }
    return { kept: { ...prepared, main: kept, acceptedByLane }, leftOut }
  }

  #keeps(event: EventGlance, acceptedByLane: Partial<Record<Lane, number>>) {
    if (event.historicalMigration) return true
    const own = quotaResourceOf(event.name, () => event.hasProperty(productTourProperty))
    const resource = this.#quotaThatLeavesOut(own)
    if (resource === null) return true
    acceptedByLane[event.lane]!--
    this.#note(resource, () => ({ uuid: event.uuid, name: event.name, resource }))
    return false
  }

  /** On v1 the quota of events is of all events; on v0 those with a quota of their own go by that one. */
  #quotaThatLeavesOut(own: EventResource): EventResource | null {
    if (this.#usedUp.has(own)) return own
    return this.#protocol === 'v1' && this.#usedUp.has('events') ? 'events' : null
  }

  #note(resource: EventResource, event: () => LeftOutEvent): void {
    this.#count++
    this.#countOf.set(resource, (this.#countOf.get(resource) ?? 0) + 1)
    if (this.#protocol === 'v1' || this.#events.length < listedMax) this.#events.push(event())
  }
}
