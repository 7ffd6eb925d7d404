// Turns all items of one request into rows of an outcome table, with encoded log records. Pure, so that it runs on the
// event loop for small requests and in a decode thread for large ones. Each protocol normalises events its own way;
// this file decides what a bad event means for its request and what is stored of it.

import {
  type CapturedEvent,
  importWithoutJob,
  type Lane,
  type RejectedBody,
  type RejectSource,
} from '../events/captured-event.ts'
import { findEventDropReason } from '../events/event-drops.ts'
import { type JsonObject, parseJsonWithDoubles } from '../json.ts'
import type { JsonMember } from '../json-text.ts'
import { noIngestionSettings } from '../project.ts'
import { err, type Result } from '../result.ts'
import { mayHaveVisitors } from './cookieless-body.ts'
import { extractVisitor, findImportDropReason, type SettleVisitor } from './cookieless-event.ts'
import { noteWarnings } from './edge-warnings.ts'
import type { RandomUint32 } from './event-uuid.ts'
import {
  type IncomingEvent,
  type IncomingItems,
  type IncomingRequest,
  type IncomingV1Event,
  type IncomingV1Request,
  type PerformanceEvent,
  type ReadableItem,
  toRefusedItem,
} from './incoming-event.ts'
import { type EventContext, normalizeEvent, type RequestContext, refusedFields } from './normalize-event.ts'
import { isCookielessV1Event, normalizeV1Event, type V1EventContext } from './normalize-v1-event.ts'
import { type OutcomeTable, rejectCountMax, TableWriter } from './outcome-table.ts'
import {
  type CaptureRejectReason,
  cookielessDropCodes,
  okCode,
  performanceCode,
  personlessCode,
  rejectCodes,
  warningCodes,
  workerDropCodes,
} from './outcomes.ts'
import { type EventResource, eventResourceOf } from './quota-resource.ts'
import { toStoredRejectBody, truncateRefusedItem } from './reject-body.ts'

/** A request whose events were prepared; its project is not known yet. */
export interface PreparedRequest {
  readonly protocol: 'v0' | 'v1'
  readonly token: string
  readonly historicalMigration: boolean
  readonly table: OutcomeTable
  /**
   * The request's body for the reject store, in case a bad item causes the request's refusal; '' when no item can cause it.
   */
  readonly body: RejectedBody
}

/** What is known of a request besides its text. */
export interface ReceivedRequest {
  readonly receivedAtMs: number
  /** When its events are accepted; `receivedAtMs` when absent. */
  readonly capturedAtMs?: number
  /** Address of the connection, '' when unknown. */
  readonly ip: string
  /** Live events of the main lane at least this old become imports; none do when absent. */
  readonly rerouteOlderThanMs?: number | null
  /** The import job of a historical migration; absent if it has none. */
  readonly importJobId?: number
}

/** Returns the function that settles the visitors of the key's project; null when no project has the key. */
export type GetSettleVisitor = (token: string) => SettleVisitor | null

/**
 * Normalises and encodes the items in order, with the project left open (0). A bad item refuses the whole request, with one
 * exception: a historical migration's event with an unreadable time is left out by itself and becomes a reject. In an
 * itemised request every bad item is left out that way, and the rows of events have the outcome that the answer reports.
 * Source: docs/wire/ingestion.md 1.7, 1.9; docs/wire/import.md 3.6.
 */
export function prepareEvents(
  request: IncomingRequest,
  received: ReceivedRequest & { readonly random: RandomUint32 },
  visitorsOf?: GetSettleVisitor,
): OutcomeTable {
  const { historicalMigration, isItemised } = request
  const context: EventContext = {
    ...buildContext(request, received),
    // Times of an import are taken as written, so its send time has no effect.
    sentAtMs: historicalMigration ? null : request.sentAtMs,
    random: received.random,
  }
  return prepareItems(request, context, isItemised ? itemisedV0 : v0, visitorsOf)
}

/** `prepareEvents` for v1, whose requests are always itemised. Source: docs/wire/ingestion.md 4. */
export function prepareV1Events(
  request: IncomingV1Request,
  received: ReceivedRequest,
  visitorsOf?: GetSettleVisitor,
): OutcomeTable {
  const { sentAtMs, sdk, aiOnly, captureInternal } = request
  const ip = captureInternal ? '127.0.0.1' : received.ip
  const context: V1EventContext = { ...buildContext(request, { ...received, ip }), sentAtMs, sdk, aiOnly }
  return prepareItems(request, context, v1, visitorsOf)
}

/** What differs between the two capture protocols. */
interface Protocol<Event, Context> {
  readonly name: 'v0' | 'v1'
  normalize(item: Event, context: Context): Result<CapturedEvent, Fault>
  isCookieless(item: Event): boolean
  /** Returns an incoming event's `visitorMembers`. */
  membersOf(item: Event): readonly JsonMember[] | undefined
  /** The outcome of an event that is stored. */
  codeOf(event: CapturedEvent): number
  /** What the replay of a reject needs in addition to the fields that both protocols have. */
  sourceOf(context: Context): Pick<RejectSource, 'v1'>
}

interface Fault {
  readonly reason: CaptureRejectReason
  readonly field: string
}

const v0: Protocol<IncomingEvent, EventContext> = {
  name: 'v0',
  normalize(item, context) {
    const event = normalizeEvent(item, context)
    return event.ok ? event : err({ reason: event.error, field: refusedFields[event.error] })
  },
  isCookieless: item => item.isCookieless,
  membersOf: item => item.visitorMembers,
  codeOf: () => okCode,
  sourceOf: () => ({}),
}

const itemisedV0: typeof v0 = { ...v0, codeOf: findReportedCode }

const v1: Protocol<IncomingV1Event, V1EventContext> = {
  name: 'v1',
  normalize: normalizeV1Event,
  isCookieless: isCookielessV1Event,
  membersOf: () => undefined,
  codeOf: ({ personProcessingForcedOff }) => (personProcessingForcedOff ? personlessCode : okCode),
  sourceOf: ({ sdk, aiOnly }) => ({ v1: { sdk, aiOnly } }),
}

function prepareItems<Event extends IncomingEvent | IncomingV1Event, Context extends RequestContext>(
  request: IncomingItems<Event>,
  context: Context,
  protocol: Protocol<Event, Context>,
  visitorsOf?: GetSettleVisitor,
): OutcomeTable {
  const { items, historicalMigration } = request
  /** Looked up at the first event of cookieless mode; undefined before that. */
  let settle: SettleVisitor | null | undefined
  const table = new TableWriter(items.length)
  const rejects = new RejectWriter(table, request, context, protocol)
  // Rejects are kept in the order in which they are found: items of the wrong shape come first.
  for (let row = 0; row < items.length; row++) {
    const item = items[row]!
    if (item.kind === 'fault') rejects.add(row, item, item, null)
  }
  for (let row = 0; row < items.length; row++) {
    const item = items[row]!
    if (item.kind !== 'event') continue
    const event = protocol.normalize(item, context)
    if (event.ok) {
      const isCookieless = protocol.isCookieless(item)
      if (isCookieless && settle === undefined) settle = visitorsOf?.(request.token) ?? null
      addEventRow(table, row, event.value, protocol.codeOf(event.value), {
        isUuidMade: item.uuid === null,
        isCookieless,
        isImport: historicalMigration,
        members: protocol.membersOf(item),
        settle: settle ?? null,
      })
    } else rejects.add(row, item, event.error, eventResourceOf(item.name, item.propertiesJson ?? '{}'))
  }
  for (let row = 0; row < items.length; row++) {
    const item = items[row]!
    if (item.kind === 'performance') rejects.addPerformanceEvent(row, item)
  }
  return table.finish()
}

/**
 * Adds an event. The record of a cookieless event contains nothing that identifies its visitor.
 * @param about `isImport`: the event's whole request is an import, whose visitors were hashed at the source. `members`: as
 * for `readVisitor`.
 */
export function addEventRow(
  table: TableWriter,
  row: number,
  event: CapturedEvent,
  code: number,
  about: {
    readonly isUuidMade: boolean
    readonly isCookieless: boolean
    readonly isImport: boolean
    readonly members?: readonly JsonMember[] | undefined
    readonly settle?: SettleVisitor | null
  },
): void {
  const { isUuidMade, isCookieless, isImport, members, settle = null } = about
  if (!isCookieless || isImport) {
    const drop = isCookieless ? findImportDropReason(event.distinctId) : null
    table.addEvent(row, event, drop === null ? code : cookielessDropCodes[drop], { isUuidMade, visitor: null })
    return
  }
  const { event: stripped, visitor } = extractVisitor(event, members)
  const settled = settle === null ? null : settle(stripped, visitor)
  table.addEvent(row, stripped, code, { isUuidMade, visitor: settled === null ? visitor : null, settled })
}

/** Adds the rows of items that do not become events. */
class RejectWriter<Event, Context extends RequestContext> {
  readonly #table: TableWriter
  readonly #request: IncomingItems<Event>
  readonly #context: Context
  readonly #protocol: Protocol<Event, Context>
  #count = 0
  #isOfVisitors: boolean | null = null

  constructor(table: TableWriter, request: IncomingItems<Event>, context: Context, protocol: Protocol<Event, Context>) {
    this.#table = table
    this.#request = request
    this.#context = context
    this.#protocol = protocol
  }

  /** @param resource the quota that the item would count against as an event; null when its shape rules that out. */
  add(
    row: number,
    item: ReadableItem & { readonly isNameless?: boolean },
    { reason, field }: Fault,
    resource: EventResource | null,
  ): void {
    const { isItemised, historicalMigration, placeOf, sourceJson } = this.#request
    const { sentAtMs, rerouteOlderThanMs } = this.#context
    const refusesRequest = !isItemised && reason !== 'timestamp_invalid'
    const isKept = !refusesRequest && ++this.#count <= rejectCountMax
    const { text: body, source } = toStoredRejectBody(isKept ? sourceJson(row) : '', {
      kind: 'item',
      protocol: this.#protocol.name,
      engage: false,
      ip: isKept && this.#hasVisitors() ? '' : this.#context.ip,
      sentAtMs,
      personProcessingForcedOff: false,
      ...this.#protocol.sourceOf(this.#context),
    })
    const reject = this.#recordOf(item, reason, refusesRequest ? placeOf(row) + field : field)
    this.#table.addReject(row, { ...reject, body, source }, rejectCodes[reason], {
      // Quotas apply before single events are checked (docs/wire/ingestion.md 1.7). A bad event that might have become an
      // import because of its age is still checked, since no quota applies to imports.
      resource: refusesRequest && !historicalMigration && rerouteOlderThanMs === null ? resource : null,
      isNameless: item.isNameless === true,
      refusesRequest,
    })
  }

  /** The event's record is only for the answer to an itemised request and is never kept. */
  addPerformanceEvent(row: number, { uuid }: PerformanceEvent): void {
    const item = { uuid, name: '$performance_event', distinctId: '' }
    const reject = { ...this.#recordOf(item, 'dropped_performance_event', ''), body: '' }
    this.#table.addReject(row, reject, performanceCode, { resource: null, isNameless: false, refusesRequest: false })
  }

  /**
   * Whether any item may be of cookieless mode. All items of a request share one sender, whose address is then hidden.
   */
  #hasVisitors(): boolean {
    const { items, sourceJson } = this.#request
    this.#isOfVisitors ??= items.some((_, row) => mayHaveVisitors(sourceJson(row)))
    return this.#isOfVisitors
  }

  #recordOf(item: ReadableItem, reason: CaptureRejectReason, field: string) {
    const { projectId, token, historicalMigration, importJobId, receivedAtMs, capturedAtMs } = this.#context
    const lane: Lane = historicalMigration ? 'historical' : 'main'
    const context = { projectId, token, lane, historicalMigration, importJobId, receivedAtMs, capturedAtMs }
    return { ...context, reason, field, ...truncateRefusedItem(toRefusedItem(item)) }
  }
}

function buildContext(
  { token, historicalMigration }: Pick<IncomingRequest, 'token' | 'historicalMigration'>,
  { receivedAtMs, capturedAtMs = receivedAtMs, rerouteOlderThanMs = null, ip, ...received }: ReceivedRequest,
): Omit<RequestContext, 'sentAtMs'> {
  return {
    projectId: 0,
    token,
    historicalMigration,
    importJobId: historicalMigration ? (received.importJobId ?? importWithoutJob) : 0,
    receivedAtMs,
    capturedAtMs,
    rerouteOlderThanMs,
    ip,
  }
}

/** The outcome that follows from the event alone. What its project or person causes later becomes a warning. */
function findReportedCode(event: CapturedEvent): number {
  // Parses the properties again, but only for itemised requests: nothing else here needs them parsed.
  const properties = parseJsonWithDoubles(event.propertiesJson) as JsonObject
  const isPersonless = properties.$process_person_profile === false
  const drop = findEventDropReason(event, properties, { ingestion: noIngestionSettings }, isPersonless)
  if (drop !== null) return workerDropCodes[drop.reason]
  const warning = noteWarnings.find(({ note }) => (event.notes & note) !== 0)
  return warning === undefined ? okCode : warningCodes[warning.type]
}
