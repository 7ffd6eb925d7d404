// An event of cookieless mode: what identifies its visitor is taken out of it before its record is made, and stands
// beside the records of its request only until the edge has made a hash of it (`services/capture/hide-visitors.ts`).
// Source: docs/wire/ingestion.md 13.

import { cookielessSentinel } from '../cookieless/visitor-hash.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import { isTruthy } from '../events/group-identity.ts'
import { editedMembers, keyAt, type Member, MemberNames, membersNamed, stringEnd } from '../json-text.ts'
import type { SettledVisitor } from '../log/record-codec.ts'
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
  /** The connection's address when the event names none. */
  ip: string
  userAgent: string
  host: string
  extra: string
  timezone: string
  /** It asks that its address is not looked up. */
  isGeoipDisabled: boolean
}

/** What tells a visitor's address or user agent, or helps to guess the hash. */
export const identifyingNames = ['$ip', '$raw_user_agent', '$initial_raw_user_agent', '$cookieless_extra'] as const
/** The properties that say something of the visitor, or are made of its hash. */
export const visitorNames = [
  ...identifyingNames,
  '$device_id',
  '$session_id',
  '$distinct_id',
  '$host',
  '$timezone',
  '$geoip_disable',
  '$set',
  '$set_once',
] as const

const identifying = new MemberNames(identifyingNames)
const ofVisitor = new MemberNames(visitorNames)

/**
 * @param members the properties of `visitorNames`, where they are known.
 * @returns what the properties say of the visitor, and their text without that and without ids.
 */
export function readVisitor(
  propertiesJson: string,
  members: readonly Member[] = membersNamed(propertiesJson, ofVisitor),
): { readonly facts: VisitorFacts; readonly strippedJson: string } {
  const facts: VisitorFacts = { ip: '', userAgent: '', host: '', extra: '', timezone: '', isGeoipDisabled: false }
  const strippedJson = editedMembers(propertiesJson, members, ({ name, valueStart, end }) => {
    switch (name as (typeof visitorNames)[number]) {
      case '$host':
        facts.host = textAt(propertiesJson, valueStart, end)
        return undefined
      case '$timezone':
        facts.timezone = textAt(propertiesJson, valueStart, end)
        return undefined
      case '$geoip_disable':
        facts.isGeoipDisabled = isTruthy(JSON.parse(propertiesJson.slice(valueStart, end)))
        return undefined
      case '$ip':
        facts.ip = textAt(propertiesJson, valueStart, end)
        return null
      case '$raw_user_agent':
        facts.userAgent = textAt(propertiesJson, valueStart, end)
        return null
      case '$cookieless_extra':
        facts.extra = textAt(propertiesJson, valueStart, end)
        return null
      case '$set':
      case '$set_once':
        return strippedMap(propertiesJson.slice(valueStart, end))
      default:
        return null
    }
  })
  return { facts, strippedJson }
}

/** The text of an object without what tells who the visitor is; undefined when there is none in it. */
export function strippedMap(text: string): string | undefined {
  if (text.charCodeAt(0) !== openBrace) return undefined
  const members = membersNamed(text, identifying)
  return members.length === 0 ? undefined : editedMembers(text, members, () => null)
}

/** An event of cookieless mode as its record may have it, and what it said of its visitor. @param members of `readVisitor`. */
export function withoutVisitor(
  event: CapturedEvent,
  members?: readonly Member[],
): { readonly event: CapturedEvent; readonly visitor: VisitorFacts } {
  const { setJson, setOnceJson, ip } = event
  const { facts, strippedJson } = readVisitor(event.propertiesJson, members)
  if (facts.ip === '') facts.ip = ip
  const stripped = {
    ...event,
    ip: '',
    propertiesJson: strippedJson,
    setJson: setJson === null ? null : (strippedMap(setJson) ?? setJson),
    setOnceJson: setOnceJson === null ? null : (strippedMap(setOnceJson) ?? setOnceJson),
  }
  return { event: stripped, visitor: facts }
}

/** What the record of an event gets; null when that has to wait, or the event may be dropped. */
export type SettleVisitor = (event: CapturedEvent, facts: VisitorFacts) => SettledVisitor | null

export function isSameVisitor(one: VisitorFacts, other: VisitorFacts): boolean {
  return (
    one.ip === other.ip &&
    one.userAgent === other.userAgent &&
    one.host === other.host &&
    one.extra === other.extra &&
    one.timezone === other.timezone &&
    one.isGeoipDisabled === other.isGeoipDisabled
  )
}

/** No browser or page has a part as long. What is longer would be hashed where requests wait, a millisecond per 100 KB. */
const partCharsMax = 4_096

/** The string value of a member, cut to `partCharsMax` characters; '' for a value that is not a string. */
function textAt(text: string, start: number, end: number): string {
  if (text.charCodeAt(start) !== quote) return ''
  const value = keyAt(text, start, text.charCodeAt(end - 1) === quote ? end : stringEnd(text, start))
  return value.length <= partCharsMax ? value : value.slice(0, partCharsMax)
}

const quote = 0x22
const openBrace = 0x7b
