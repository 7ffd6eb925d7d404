// Replaces address and user agent of cookieless events by a hash that is valid for one day, before any of the events is
// written. If a request is read on the event loop and the day's salt is known, the record is made with the hash. Records
// made by a decode thread, and those of a day whose salt must first come from the store, are changed afterwards. Source:
// docs/wire/ingestion.md 13.

import {
  type CookielessDrop,
  findModeDropReason,
  isSameVisitor,
  type SettleVisitor,
  type VisitorFacts,
} from '#core/capture/cookieless-event.ts'
import {
  EventRewriter,
  hasVisitorAt,
  isNotEventAt,
  type OutcomeTable,
  outcomeAt,
  rowCountOf,
  setOutcomeCode,
  TableRecords,
} from '#core/capture/outcome-table.ts'
import { cookielessDropCodes } from '#core/capture/outcomes.ts'
import { findRootDomain } from '#core/cookieless/root-domain.ts'
import { normalizeVisitorAddress } from '#core/cookieless/visitor-address.ts'
import { deriveStatelessSessionId, findVisitorDay, isDayOpen, type VisitorDay } from '#core/cookieless/visitor-day.ts'
import {
  buildHashedDeviceId,
  buildHashedDistinctId,
  computeVisitorHash,
  cookielessSentinel,
  encodeVisitorHash,
} from '#core/cookieless/visitor-hash.ts'
import { detachSubstring } from '#core/detach-substring.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { encodeVisitor } from '#core/events/visitor-text.ts'
import { createSettledVisitor, type SettledVisitor } from '#core/log/record-codec.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Steps } from '#core/maybe-steps.ts'
import type { Project } from '#core/project.ts'
import type { Geoip } from '#ports/geoip.ts'
import type { DailySalts } from '../shared/daily-salts.ts'
import { runInSlices } from '../shared/run-in-slices.ts'

export type VisitorAnonymizer = ReturnType<typeof createVisitorAnonymizer>

export interface VisitorAnonymizerOptions {
  readonly salts: Pick<DailySalts, 'knownSalt' | 'saltOf'>
  readonly geoip: Geoip | null
}

/** About a millisecond of work. */
const rowsPerStep = 64
const bytesPerStep = 256 * 1024

export function createVisitorAnonymizer(options: VisitorAnonymizerOptions) {
  const recent: RecentVisitors = new WeakMap()
  return {
    /**
     * Settles the events of one request before their records are made. It leaves to `hide`: events that wait for a salt,
     * dropped events, and the rest of a request with many visitors, which would block the event loop.
     */
    settlerOf(project: Project): SettleVisitor {
      const settler = new Settler(project, options, recent)
      return (event, facts) => {
        if (settler.changeCount >= rowsPerStep) return null
        const settled = settler.settle(event, event.historicalMigration, facts)
        return typeof settled === 'string' || isMissing(settled) ? null : settled
      }
    },
    /**
     * Gives the remaining events of cookieless mode the ids of their visitors, or another outcome.
     * @throws (or rejects with) PortError when the salts of a day are unavailable: nothing of the request may be stored
     * then.
     */
    hide(table: OutcomeTable, project: Project): MaybePromise<void> {
      const settler = new Settler(project, options, recent)
      const pass = new Pass(table, settler)
      const missing = runInSlices(pass.run())
      return missing === null ? undefined : finishPass(pass, settler, missing, options.salts)
    },
  }
}

async function finishPass(
  pass: Pass,
  settler: Settler,
  first: MaybePromise<MissingSalt | null>,
  salts: VisitorAnonymizerOptions['salts'],
): Promise<void> {
  let missing = await first
  while (missing !== null) {
    settler.salts.set(missing.day, await salts.saltOf(missing.day))
    missing = await runInSlices(pass.run())
  }
}

class Pass {
  readonly #table: OutcomeTable
  readonly #settler: Settler
  readonly #records: TableRecords
  readonly #rewriter: EventRewriter
  #row = 0
  #visitorCount = 0

  constructor(table: OutcomeTable, settler: Settler) {
    this.#table = table
    this.#settler = settler
    this.#records = new TableRecords(table)
    this.#rewriter = new EventRewriter(table)
  }

  /** Continues where it stopped. @returns the salt that it needs before it can continue; null at the end. */
  *run(): Steps<MissingSalt | null> {
    const table = this.#table
    let bytesLeft = bytesPerStep
    for (; this.#row < rowCountOf(table); this.#row++) {
      if ((this.#row + 1) % rowsPerStep === 0 || bytesLeft < 0) {
        bytesLeft = bytesPerStep
        yield
      }
      if (isNotEventAt(table, this.#row)) continue
      const record = this.#records.at(this.#row)
      let settled: SettledVisitor | null = null
      if (hasVisitorAt(table, this.#row)) {
        if (outcomeAt(table, this.#row).isStored) {
          const result = this.#settler.settle(record, record.isImport, table.visitors[this.#visitorCount]!)
          if (isMissing(result)) return result
          if (typeof result === 'string') setOutcomeCode(table, this.#row, cookielessDropCodes[result])
          else settled = result
        }
        this.#visitorCount++
      }
      this.#rewriter.add(this.#row, settled)
      bytesLeft -= record.size
    }
    this.#rewriter.finish()
    return null
  }
}

interface MissingSalt {
  readonly kind: 'missing_salt'
  readonly day: string
}

function isMissing(value: object | string): value is MissingSalt {
  return typeof value === 'object' && 'kind' in value
}

/**
 * What was computed for the visitors of a salt, kept because a page sends several requests. It is released together with
 * the salt's array, which is replaced twice a minute (`services/shared/daily-salts.ts`).
 */
type RecentVisitors = WeakMap<Uint8Array, VisitorsOfSalt>

interface VisitorsOfSalt {
  /** By user agent and then by address, since joining them would take three times as long as both look-ups. */
  readonly byUserAgent: Map<string, Map<string, Visitor>>
  count: number
}

const recentCountMax = 5_000
/** No browser sends longer values; made-up ones are not remembered. */
const recentCharsMax = 500

/** A visitor of a project on one day. */
interface Visitor extends Pick<VisitorDay, 'day' | 'startMs'> {
  readonly project: Project
  readonly host: string
  readonly extra: string
  /** The text of the base hash. */
  readonly hash: string
  readonly distinctId: string
  /** The ids that the visitor's events have among their properties, as text. */
  readonly membersText: string
  /** The settled results of the visitor's events, by `isSentinel` and `isLookedUp`. */
  readonly settled: (SettledVisitor | undefined)[]
}

/** Settles the events of one request; most consecutive events have the same visitor. */
class Settler {
  /**
   * The salts that this request read from the store. They may be forgotten everywhere else before the request
   * continues.
   */
  readonly salts = new Map<string, Uint8Array>()
  readonly #project: Project
  readonly #options: VisitorAnonymizerOptions
  readonly #recent: RecentVisitors
  /** How often the visitor changed from one event to the next. */
  changeCount = 0
  #last: { readonly facts: VisitorFacts; readonly day: VisitorDay; readonly visitor: Visitor } | null = null

  constructor(project: Project, options: VisitorAnonymizerOptions, recent: RecentVisitors) {
    this.#project = project
    this.#options = options
    this.#recent = recent
  }

  /** The result for the event, why it is dropped, or the salt that is missing. */
  settle(
    event: Pick<CapturedEvent, 'name' | 'distinctId' | 'timestampMs' | 'capturedAtMs'>,
    isImport: boolean,
    facts: VisitorFacts,
  ): SettledVisitor | CookielessDrop | MissingSalt {
    const { geoipEnabled, ingestion } = this.#project
    const mode = ingestion.cookielessMode
    const drop = findModeDropReason(event.name, mode)
    if (drop !== null) return drop
    const visitor = this.#visitorOf(facts, event.timestampMs, event.capturedAtMs)
    if (typeof visitor === 'string' || isMissing(visitor)) return visitor
    const isSentinel = mode === 2 && event.distinctId === cookielessSentinel
    // Decides the same way as the worker does for other events (`core/processing/enrich-event.ts`).
    const isLookedUp = geoipEnabled && !isImport && !facts.isGeoipDisabled
    const slot = (isSentinel ? 2 : 0) + (isLookedUp ? 1 : 0)
    visitor.settled[slot] ??= this.#settledOf(visitor, facts, isSentinel, isLookedUp)
    return visitor.settled[slot]
  }

  #settledOf(
    { project, hash, day, distinctId, membersText }: Visitor,
    { ip }: VisitorFacts,
    isSentinel: boolean,
    isLookedUp: boolean,
  ): SettledVisitor {
    const location = isLookedUp ? (this.#options.geoip?.lookUp(normalizeVisitorAddress(ip)) ?? null) : null
    if (project.ingestion.cookielessMode === 1)
      return createSettledVisitor(distinctId, encodeVisitor({ stateful: null, location }), membersText)
    const text = encodeVisitor({ stateful: { hash, day, isSentinel }, location })
    return createSettledVisitor(isSentinel ? distinctId : null, text, '')
  }

  #visitorOf(facts: VisitorFacts, timestampMs: number, capturedAtMs: number): Visitor | CookielessDrop | MissingSalt {
    const last = this.#last
    if (
      last !== null &&
      isWithinDay(last.day, timestampMs) &&
      (last.facts === facts || isSameVisitor(last.facts, facts))
    )
      return last.visitor
    this.changeCount++
    const { ip, host, userAgent, timezone } = facts
    if (userAgent === '') return 'cookieless_missing_user_agent'
    if (ip === '') return 'cookieless_missing_ip'
    if (host === '') return 'cookieless_missing_host'
    const day = findVisitorDay(timestampMs, timezone, this.#project.timezone)
    // Judged by the time of acceptance: for a replayed event, the day may have been open only when the event first arrived.
    if (!isDayOpen(day.day, capturedAtMs)) return 'cookieless_timestamp_out_of_range'
    const salt = this.salts.get(day.day) ?? this.#options.salts.knownSalt(day.day)
    if (salt === null) return { kind: 'missing_salt', day: day.day }
    const visitor = this.#recentOf(day, salt, facts)
    this.#last = { facts, day, visitor }
    return visitor
  }

  #recentOf(day: VisitorDay, salt: Uint8Array, facts: VisitorFacts): Visitor {
    const { ip, host, extra, userAgent } = facts
    const project = this.#project
    const known = this.#recent.get(salt)?.byUserAgent.get(userAgent)?.get(ip)
    // One entry per user agent and address is enough: few visitors see several projects or hosts within half a minute, or
    // have several time zones.
    const isSame = known !== undefined && known.project === project && known.startMs === day.startMs
    if (isSame && known.host === host && known.extra === extra) return known
    const visitor = hashVisitorOfDay(day, salt, project, facts)
    if (ip.length + host.length + extra.length + userAgent.length <= recentCharsMax)
      this.#remember(visitor, salt, facts)
    return visitor
  }

  #remember(visitor: Visitor, salt: Uint8Array, { userAgent, ip }: VisitorFacts): void {
    let visitors = this.#recent.get(salt)
    if (visitors === undefined || visitors.count >= recentCountMax) {
      visitors = { byUserAgent: new Map(), count: 0 }
      this.#recent.set(salt, visitors)
    }
    let ofUserAgent = visitors.byUserAgent.get(userAgent)
    if (ofUserAgent === undefined) {
      ofUserAgent = new Map()
      visitors.byUserAgent.set(detachSubstring(userAgent), ofUserAgent)
    }
    if (!ofUserAgent.has(ip)) visitors.count++
    ofUserAgent.set(detachSubstring(ip), visitor)
  }
}

function isWithinDay({ startMs, endMs }: VisitorDay, timeMs: number): boolean {
  return startMs <= timeMs && timeMs < endMs
}

function hashVisitorOfDay(
  { day, startMs }: VisitorDay,
  salt: Uint8Array,
  project: Project,
  { ip, host, userAgent, extra }: VisitorFacts,
): Visitor {
  const parts = { projectId: project.id, address: normalizeVisitorAddress(ip), userAgent, extra }
  const base = computeVisitorHash(salt, parts, findRootDomain(host))
  const hash = encodeVisitorHash(base)
  const distinctId = buildHashedDistinctId(hash)
  const sessionId = deriveStatelessSessionId(startMs, base)
  const membersText = `"$device_id":"${buildHashedDeviceId(hash)}","$session_id":"${sessionId}","$distinct_id":"${distinctId}"`
  const own = { host: detachSubstring(host), extra: detachSubstring(extra) }
  return { day, startMs, project, ...own, hash, distinctId, membersText, settled: [] }
}
