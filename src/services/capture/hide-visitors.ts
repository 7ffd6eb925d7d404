// Replaces address and user agent of cookieless events by a hash of the day, before anything of them is written. It works
// on encoded records, because the project is not known earlier. Source: docs/wire/ingestion.md 13.

import {
  type CookielessDrop,
  dropOfImport,
  dropOfMode,
  readVisitor,
  strippedEvent,
  withIds,
} from '#core/capture/cookieless-event.ts'
import {
  EventRewriter,
  isCookielessAt,
  isNoEventAt,
  type OutcomeTable,
  outcomeAt,
  rowCountOf,
  setCode,
  TableRecords,
} from '#core/capture/outcome-table.ts'
import { cookielessDropCodes } from '#core/capture/outcomes.ts'
import { rootDomain } from '#core/cookieless/root-domain.ts'
import { visitorAddress } from '#core/cookieless/visitor-address.ts'
import { isDayOpen, statelessSessionId, type VisitorDay, visitorDay } from '#core/cookieless/visitor-day.ts'
import {
  cookielessSentinel,
  hashedDeviceId,
  hashedDistinctId,
  hashText,
  type VisitorParts,
  visitorHash,
} from '#core/cookieless/visitor-hash.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { Steps } from '#core/maybe-steps.ts'
import type { Project } from '#core/project.ts'
import type { Geoip } from '#ports/geoip.ts'
import { inSlices } from '../shared/in-slices.ts'

export interface VisitorHider {
  /**
   * Gives events of cookieless mode another outcome or another record.
   * @param isImport whether the request says that it is an import.
   * @throws PortError when the salts of a day cannot be had: nothing of the request may be stored then.
   */
  hide(table: OutcomeTable, project: Project, isImport: boolean): Promise<void>
}

export interface VisitorHiderOptions {
  /** @throws PortError when the store is away. */
  readonly saltOf: (day: string) => Uint8Array | Promise<Uint8Array>
  readonly geoip: Geoip | null
}

/** A request has few days, since few are open at a time. */
type Salts = Map<string, Uint8Array>

/** About a millisecond of work. */
const rowsPerStep = 64
const bytesPerStep = 256 * 1024

export function createVisitorHider({ saltOf, geoip }: VisitorHiderOptions): VisitorHider {
  return {
    async hide(table, project, isImport) {
      const salts: Salts = new Map()
      const pass = new Pass(table, project, isImport, salts, geoip)
      for (;;) {
        const day = await inSlices(pass.run())
        if (day === null) return
        salts.set(day, await saltOf(day))
      }
    },
  }
}

/** Whether a request has an event of cookieless mode; nearly none has. */
export function hasCookieless(table: OutcomeTable): boolean {
  for (let row = 0; row < rowCountOf(table); row++) if (isCookielessAt(table, row)) return true
  return false
}

interface KnownParts extends VisitorParts {
  /** The root domain of the page. */
  readonly root: string
}

/** A visitor as the last event showed it: events of one request are mostly one visitor's. */
interface Visitor extends KnownParts, VisitorDay {
  /** The texts that the hash becomes. */
  readonly text: string
  readonly ids: { readonly $device_id: string; readonly $session_id: string; readonly $distinct_id: string }
}

class Pass {
  readonly #table: OutcomeTable
  readonly #project: Project
  readonly #isImport: boolean
  readonly #salts: Salts
  readonly #geoip: Geoip | null
  readonly #records: TableRecords
  readonly #rewriter: EventRewriter
  #row = 0
  #last: Visitor | null = null
  #lastPlace: { readonly address: string; readonly location: ReturnType<Geoip['lookUp']> } | null = null

  constructor(table: OutcomeTable, project: Project, isImport: boolean, salts: Salts, geoip: Geoip | null) {
    this.#table = table
    this.#project = project
    this.#isImport = isImport
    this.#salts = salts
    this.#geoip = geoip
    this.#records = new TableRecords(table)
    this.#rewriter = new EventRewriter(table)
  }

  /** Goes on where it stopped. @returns the day whose salt it needs first; null at the end. */
  *run(): Steps<string | null> {
    let bytesLeft = bytesPerStep
    for (; this.#row < rowCountOf(this.#table); this.#row++) {
      if ((this.#row + 1) % rowsPerStep === 0 || bytesLeft < 0) {
        bytesLeft = bytesPerStep
        yield
      }
      if (isNoEventAt(this.#table, this.#row)) continue
      const isHidden = isCookielessAt(this.#table, this.#row) && outcomeAt(this.#table, this.#row).isStored
      const event = isHidden ? this.#hidden() : null
      if (typeof event === 'string') return event
      this.#rewriter.add(this.#row, event)
      bytesLeft -= this.#records.at(this.#row).size
    }
    this.#rewriter.finish()
    return null
  }

  /** The event of this row as it is stored, or the day whose salt is missing; null when its record stays as it is. */
  #hidden(): CapturedEvent | string | null {
    const record = this.#records.at(this.#row)
    if (this.#isImport) return this.#drop(dropOfImport(record.distinctId))
    const { cookielessMode: mode } = this.#project.ingestion
    const dropOfName = dropOfMode(record.name, mode)
    if (dropOfName !== null) return this.#drop(dropOfName)

    const event = record.event()
    const { facts, strippedJson } = readVisitor(event.propertiesJson)
    const address = visitorAddress(facts.ip === '' ? event.ip : facts.ip)
    const root = rootDomain(facts.host)
    if (facts.userAgent === '') return this.#drop('cookieless_missing_user_agent')
    if (address === '') return this.#drop('cookieless_missing_ip')
    if (root === '') return this.#drop('cookieless_missing_host')
    const day = visitorDay(event.timestampMs, facts.timezone, this.#project.timezone)
    // All events of a request are accepted at the same time. A replayed one arrived before, when its day may have been open.
    if (this.#last?.day !== day.day && !isDayOpen(day.day, event.capturedAtMs))
      return this.#drop('cookieless_timestamp_out_of_range')
    const parts = { projectId: this.#project.id, address, root, userAgent: facts.userAgent, extra: facts.extra }
    const visitor = this.#visitorOf(parts, day)
    if (visitor === null) return day.day

    const location = this.#isLookedUp(event, facts.isGeoipDisabled) ? this.#locationOf(address) : null
    if (mode === 1)
      return strippedEvent(event, {
        distinctId: visitor.ids.$distinct_id,
        visitor: { stateful: null, location },
        propertiesJson: withIds(strippedJson, visitor.ids, facts.hasIds),
      })
    const isSentinel = event.distinctId === cookielessSentinel
    return strippedEvent(event, {
      distinctId: isSentinel ? visitor.ids.$distinct_id : event.distinctId,
      visitor: { stateful: { hash: visitor.text, day: visitor.day, isSentinel }, location },
      propertiesJson: strippedJson,
    })
  }

  #drop(reason: CookielessDrop | null): null {
    if (reason !== null) setCode(this.#table, this.#row, cookielessDropCodes[reason])
    return null
  }

  /** Null when the salt of the day is not there yet. */
  #visitorOf(parts: KnownParts, { day, startMs }: VisitorDay): Visitor | null {
    const last = this.#last
    if (last !== null && last.day === day && last.startMs === startMs && isSame(last, parts)) return last
    const salt = this.#salts.get(day)
    if (salt === undefined) return null
    const hash = visitorHash(salt, parts, parts.root)
    const ids = {
      $device_id: hashedDeviceId(hash),
      $session_id: statelessSessionId(startMs, hash),
      $distinct_id: hashedDistinctId(hash),
    }
    this.#last = { ...parts, day, startMs, text: hashText(hash), ids }
    return this.#last
  }

  /** As the worker decides for other events (`core/processing/enrich-event.ts`). */
  #isLookedUp({ historicalMigration }: CapturedEvent, isDisabled: boolean): boolean {
    return this.#project.geoipEnabled && !historicalMigration && !isDisabled
  }

  #locationOf(address: string) {
    if (this.#lastPlace?.address !== address)
      this.#lastPlace = { address, location: this.#geoip?.lookUp(address) ?? null }
    return this.#lastPlace.location
  }
}

function isSame(one: KnownParts, other: KnownParts): boolean {
  return (
    one.address === other.address &&
    one.root === other.root &&
    one.userAgent === other.userAgent &&
    one.extra === other.extra
  )
}
