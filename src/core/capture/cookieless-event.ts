// An event of cookieless mode: what identifies its visitor, and what it keeps of that. The edge replaces address and
// user agent by a hash before anything is written (`services/capture/hide-visitors.ts`).
// Source: docs/wire/ingestion.md 13.

import { cookielessSentinel } from '../cookieless/visitor-hash.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import { isTruthy } from '../events/group-identity.ts'
import { withAdded } from '../events/properties-draft.ts'
import type { JsonObject } from '../json.ts'
import { editedMembers, keyAt, MemberNames, stringEnd } from '../json-text.ts'
import type { CookielessMode } from '../project.ts'

/** In the order in which they are looked for. */
export const cookielessDrops = [
  'cookieless_unsupported_event',
  'cookieless_stateless_no_identify',
  'cookieless_team_disabled',
  'cookieless_missing_user_agent',
  'cookieless_missing_ip',
  'cookieless_missing_host',
  'cookieless_timestamp_out_of_range',
] as const
export type CookielessDrop = (typeof cookielessDrops)[number]

/** The property that an event lacks, of the drops that are about one. */
export const missingProperties: Readonly<Partial<Record<CookielessDrop, string>>> = {
  cookieless_missing_user_agent: '$raw_user_agent',
  cookieless_missing_ip: '$ip',
  cookieless_missing_host: '$host',
}

/** What the mode of a project says of an event, whatever is in it; null when it is hashed. */
export function dropOfMode(name: string, mode: CookielessMode): CookielessDrop | null {
  if (name === '$create_alias' || name === '$merge_dangerously') return 'cookieless_unsupported_event'
  if (name === '$identify' && mode === 1) return 'cookieless_stateless_no_identify'
  return mode === 0 ? 'cookieless_team_disabled' : null
}

/**
 * What becomes of an event that was sent as an import; null: it is stored as it was sent, since exports have ids that are hashes already.
 */
export function dropOfImport(distinctId: string): CookielessDrop | null {
  return distinctId === cookielessSentinel ? 'cookieless_timestamp_out_of_range' : null
}

/** What an event says of its visitor; '' for a part that it does not have as text. */
export interface VisitorFacts {
  ip: string
  userAgent: string
  host: string
  extra: string
  timezone: string
  /** It asks that its address is not looked up. */
  isGeoipDisabled: boolean
  /** It was sent with an id that the hash replaces. */
  hasIds: boolean
}

/** What tells a visitor's address or user agent, or helps to guess the hash. */
export const tellingNames: readonly string[] = [
  '$ip',
  '$raw_user_agent',
  '$initial_raw_user_agent',
  '$cookieless_extra',
]
/** The ids that a settled event has; those that were sent keep their places. */
const idNames: readonly string[] = ['$device_id', '$session_id', '$distinct_id']

const telling = new MemberNames(tellingNames)
const ids = new MemberNames(idNames)
const readNames = new MemberNames([
  ...[...tellingNames, ...idNames, '$host', '$timezone', '$geoip_disable', '$set', '$set_once'],
])

/** @returns what the properties say of the visitor, and their text without what tells who it is. */
export function readVisitor(propertiesJson: string): { readonly facts: VisitorFacts; readonly strippedJson: string } {
  const facts: VisitorFacts = {
    ...{ ip: '', userAgent: '', host: '', extra: '', timezone: '', isGeoipDisabled: false, hasIds: false },
  }
  const strippedJson = editedMembers(propertiesJson, readNames, (name, start, end) => {
    switch (name) {
      case '$host':
        facts.host = textAt(propertiesJson, start)
        return undefined
      case '$timezone':
        facts.timezone = textAt(propertiesJson, start)
        return undefined
      case '$geoip_disable':
        facts.isGeoipDisabled = isTruthy(JSON.parse(propertiesJson.slice(start, end)))
        return undefined
      case '$ip':
        facts.ip = textAt(propertiesJson, start)
        return null
      case '$raw_user_agent':
        facts.userAgent = textAt(propertiesJson, start)
        return null
      case '$cookieless_extra':
        facts.extra = textAt(propertiesJson, start)
        return null
      case '$set':
      case '$set_once':
        return strippedMap(propertiesJson.slice(start, end))
      case '$initial_raw_user_agent':
        return null
      default:
        facts.hasIds = true
        return undefined
    }
  })
  return { facts, strippedJson }
}

/** The text of an object without what tells who the visitor is; undefined when there is none in it. */
export function strippedMap(text: string): string | undefined {
  if (text.charCodeAt(0) !== openBrace) return undefined
  let isStripped = false
  const stripped = editedMembers(text, telling, () => {
    isStripped = true
    return null
  })
  return isStripped ? stripped : undefined
}

/** The event without its address and with the properties given. */
export function strippedEvent(
  event: CapturedEvent,
  changes: Pick<CapturedEvent, 'distinctId' | 'visitor' | 'propertiesJson'>,
): CapturedEvent {
  const { setJson, setOnceJson } = event
  return {
    ...event,
    ...changes,
    ip: '',
    setJson: setJson === null ? null : (strippedMap(setJson) ?? setJson),
    setOnceJson: setOnceJson === null ? null : (strippedMap(setOnceJson) ?? setOnceJson),
  }
}

/**
 * The properties with these ids. @param texts one for each of `$device_id`, `$session_id` and `$distinct_id`.
 * @param hasIds whether some may be there already: those are replaced in their places.
 */
export function withIds(propertiesJson: string, texts: JsonObject, hasIds: boolean): string {
  if (!hasIds) return withAdded(propertiesJson, texts)
  const left = { ...texts }
  const replaced = editedMembers(propertiesJson, ids, name => {
    if (!Object.hasOwn(left, name)) return null
    delete left[name]
    return JSON.stringify(texts[name])
  })
  return withAdded(replaced, left)
}

/** The text that begins at `start`; '' for a value that is none. */
function textAt(text: string, start: number): string {
  return text.charCodeAt(start) === quote ? keyAt(text, start, stringEnd(text, start)) : ''
}

const quote = 0x22
const openBrace = 0x7b
