// Replaces address and user agent of cookieless events by a hash of the day, before anything of them is written. It works
// on encoded records, because the project is not known earlier. Source: docs/wire/ingestion.md 13.

import { type CookielessDrop, dropOfMode, type VisitorFacts } from '#core/capture/cookieless-event.ts'
import {
  EventRewriter,
  hasVisitorAt,
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
  visitorHash,
} from '#core/cookieless/visitor-hash.ts'
import { encodeVisitor } from '#core/events/visitor-text.ts'
import { type SettledVisitor, settledVisitor } from '#core/log/record-codec.ts'
import type { RecordView } from '#core/log/record-view.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Steps } from '#core/maybe-steps.ts'
import type { Project } from '#core/project.ts'
import type { Geoip } from '#ports/geoip.ts'
import { inSlices } from '../shared/in-slices.ts'

export interface VisitorHider {
  /**
   * Gives events of cookieless mode another outcome, or the ids that their visitors have.
   * @throws (or rejects with) PortError when the salts of a day cannot be had: nothing of the request may be stored then.
   */
  hide(table: OutcomeTable, project: Project): MaybePromise<void>
}

export interface VisitorHiderOptions {
  /** @throws PortError when the store is away. */
  readonly saltOf: (day: string) => MaybePromise<Uint8Array>
  readonly geoip: Geoip | null
}

/** About a millisecond of work. */
const rowsPerStep = 64
const bytesPerStep = 256 * 1024

export function createVisitorHider({ saltOf, geoip }: VisitorHiderOptions): VisitorHider {
  return {
    hide(table, project) {
      const pass = new Pass(table, project, saltOf, geoip)
      const salt = inSlices(pass.run())
      return salt === null ? undefined : finish(pass, salt)
    },
  }
}

async function finish(pass: Pass, first: MaybePromise<AwaitedSalt | null>): Promise<void> {
  let awaited = await first
  while (awaited !== null) {
    pass.salts.set(awaited.day, await awaited.salt)
    awaited = await inSlices(pass.run())
  }
}

interface AwaitedSalt {
  readonly day: string
  readonly salt: Promise<Uint8Array>
}

/** A visitor on one day. Events of one request are mostly one visitor's, so only the last one is remembered. */
interface Visitor extends VisitorDay {
  readonly facts: VisitorFacts
  readonly address: string
  /** The text of the base hash. */
  readonly hash: string
  readonly distinctId: string
  /** The ids that its events have among their properties. */
  readonly membersText: string
}

interface LastSettled {
  readonly visitor: Visitor
  readonly isSentinel: boolean
  readonly isImport: boolean
  readonly settled: SettledVisitor
}

class Pass {
  readonly #table: OutcomeTable
  readonly #project: Project
  /** Of the days that the request has had; few are open at a time. */
  readonly salts = new Map<string, Uint8Array>()
  readonly #saltOf: VisitorHiderOptions['saltOf']
  readonly #geoip: Geoip | null
  readonly #records: TableRecords
  readonly #rewriter: EventRewriter
  #row = 0
  #visitorCount = 0
  #last: Visitor | null = null
  #lastSettled: LastSettled | null = null

  constructor(table: OutcomeTable, project: Project, saltOf: VisitorHiderOptions['saltOf'], geoip: Geoip | null) {
    this.#table = table
    this.#project = project
    this.#saltOf = saltOf
    this.#geoip = geoip
    this.#records = new TableRecords(table)
    this.#rewriter = new EventRewriter(table)
  }

  /** Goes on where it stopped. @returns the salt that it needs first; null at the end. */
  *run(): Steps<AwaitedSalt | null> {
    let bytesLeft = bytesPerStep
    for (; this.#row < rowCountOf(this.#table); this.#row++) {
      if ((this.#row + 1) % rowsPerStep === 0 || bytesLeft < 0) {
        bytesLeft = bytesPerStep
        yield
      }
      if (isNoEventAt(this.#table, this.#row)) continue
      const record = this.#records.at(this.#row)
      let settled: SettledVisitor | AwaitedSalt | null = null
      if (hasVisitorAt(this.#table, this.#row)) {
        const facts = this.#table.visitors[this.#visitorCount]!
        if (outcomeAt(this.#table, this.#row).isStored) settled = this.#settled(record, facts)
        if (settled !== null && 'salt' in settled) return settled
        this.#visitorCount++
      }
      this.#rewriter.add(this.#row, settled)
      bytesLeft -= record.size
    }
    this.#rewriter.finish()
    return null
  }

  /** What the event of this row gets, or the salt that is missing; null when it is dropped. */
  #settled(record: RecordView, facts: VisitorFacts): SettledVisitor | AwaitedSalt | null {
    const { cookielessMode: mode } = this.#project.ingestion
    const dropOfName = dropOfMode(record.name, mode)
    if (dropOfName !== null) return this.#drop(dropOfName)
    const visitor = this.#visitorOf(facts, record)
    if (visitor === null || 'salt' in visitor) return visitor
    const isSentinel = mode === 2 && record.distinctId === cookielessSentinel
    return this.#settledOf(visitor, mode === 2, isSentinel, record.isImport)
  }

  #drop(reason: CookielessDrop): null {
    setCode(this.#table, this.#row, cookielessDropCodes[reason])
    return null
  }

  /** The visitor of an event, or the salt that is missing; null when the event is dropped. */
  #visitorOf(facts: VisitorFacts, { timestampMs, capturedAtMs }: RecordView): Visitor | AwaitedSalt | null {
    const last = this.#last
    if (last !== null && last.facts === facts && last.startMs <= timestampMs && timestampMs < last.endMs) return last
    const address = visitorAddress(facts.ip)
    const root = rootDomain(facts.host)
    if (facts.userAgent === '') return this.#drop('cookieless_missing_user_agent')
    if (address === '') return this.#drop('cookieless_missing_ip')
    if (root === '') return this.#drop('cookieless_missing_host')
    const day = visitorDay(timestampMs, facts.timezone, this.#project.timezone)
    // A replayed event arrived before, when its day may have been open.
    if (!isDayOpen(day.day, capturedAtMs)) return this.#drop('cookieless_timestamp_out_of_range')
    const salt = this.salts.get(day.day) ?? this.#saltOf(day.day)
    if (salt instanceof Promise) return { day: day.day, salt }
    this.salts.set(day.day, salt)
    const { userAgent, extra } = facts
    const base = visitorHash(salt, { projectId: this.#project.id, address, userAgent, extra }, root)
    const hash = hashText(base)
    const distinctId = hashedDistinctId(hash)
    const membersText =
      `"$device_id":"${hashedDeviceId(hash)}","$session_id":"${statelessSessionId(day.startMs, base)}",` +
      `"$distinct_id":"${distinctId}"`
    this.#last = { ...day, facts, address, hash, distinctId, membersText }
    return this.#last
  }

  #settledOf(visitor: Visitor, isStateful: boolean, isSentinel: boolean, isImport: boolean): SettledVisitor {
    const last = this.#lastSettled
    if (last?.visitor === visitor && last.isSentinel === isSentinel && last.isImport === isImport) return last.settled
    const { hash, day, distinctId, membersText, facts, address } = visitor
    // As the worker decides for other events (`core/processing/enrich-event.ts`).
    const isLookedUp = this.#project.geoipEnabled && !isImport && !facts.isGeoipDisabled
    const location = isLookedUp ? (this.#geoip?.lookUp(address) ?? null) : null
    const settled = isStateful
      ? settledVisitor(
          isSentinel ? distinctId : null,
          encodeVisitor({ stateful: { hash, day, isSentinel }, location }),
          '',
        )
      : settledVisitor(distinctId, encodeVisitor({ stateful: null, location }), membersText)
    this.#lastSettled = { visitor, isSentinel, isImport, settled }
    return settled
  }
}
