// An event of cookieless mode. What identifies its visitor is taken out before its record is made, and is kept with the
// records of its request only until the edge has hashed it (`services/capture/anonymize-visitors.ts`). Source:
// docs/wire/ingestion.md 13.

import { cookielessSentinel } from '../cookieless/visitor-hash.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import { isTruthy } from '../events/group-identity.ts'
import { editMembers, findMembersNamed, findStringEnd, type JsonMember, MemberNames, readKeyAt } from '../json-text.ts'
import type { SettledVisitor } from '../log/record-codec.ts'
import type { CookielessMode } from '../project.ts'

/** Why an event of cookieless mode is dropped, in the order of the checks. */
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

/** For drops about a missing property: the property that the event lacks. */
export const missingProperties: Readonly<Partial<Record<CookielessDrop, string>>> = {
  cookieless_missing_user_agent: '$raw_user_agent',
  cookieless_missing_ip: '$ip',
  cookieless_missing_host: '$host',
}

/** Why the project's mode drops an event, regardless of its content; null when the event is hashed. */
export function findModeDropReason(name: string, mode: CookielessMode): CookielessDrop | null {
  if (name === '$create_alias' || name === '$merge_dangerously') return 'cookieless_unsupported_event'
  if (name === '$identify' && mode === 1) return 'cookieless_stateless_no_identify'
  return mode === 0 ? 'cookieless_team_disabled' : null
}

/**
 * Why an event that was sent as an import is dropped; null when it is stored as it was sent, since the ids in exports are
 * hashes already.
 */
export function findImportDropReason(distinctId: string): CookielessDrop | null {
  return distinctId === cookielessSentinel ? 'cookieless_timestamp_out_of_range' : null
}

/** What an event says about its visitor; '' for a part that is missing or not text. */
export interface VisitorFacts {
  /** The connection's address when the event names none. */
  ip: string
  userAgent: string
  host: string
  extra: string
  timezone: string
  /** The event asks that its address is not looked up. */
  isGeoipDisabled: boolean
}

/** Properties that reveal a visitor's address or user agent, or help to guess the hash. */
export const identifyingNames = ['$ip', '$raw_user_agent', '$initial_raw_user_agent', '$cookieless_extra'] as const
/** The properties that say something about the visitor, or are derived from its hash. */
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

const textFacts = new Map<string, Exclude<keyof VisitorFacts, 'isGeoipDisabled'>>([
  ['$host', 'host'],
  ['$timezone', 'timezone'],
  ['$ip', 'ip'],
  ['$raw_user_agent', 'userAgent'],
  ['$cookieless_extra', 'extra'],
])
const identifying = new MemberNames(identifyingNames)
const ofVisitor = new MemberNames(visitorNames)

/**
 * @param members where the properties named in `visitorNames` are, if known. @returns what the properties say about the
 * visitor, and their text without those facts and without ids.
 */
export function readVisitor(
  propertiesJson: string,
  members: readonly JsonMember[] = findMembersNamed(propertiesJson, ofVisitor),
): { readonly facts: VisitorFacts; readonly strippedJson: string } {
  const facts: VisitorFacts = { ip: '', userAgent: '', host: '', extra: '', timezone: '', isGeoipDisabled: false }
  const strippedJson = editMembers(propertiesJson, members, ({ name, valueStart, end }) => {
    const fact = textFacts.get(name)
    if (fact !== undefined) facts[fact] = readTextAt(propertiesJson, valueStart, end)
    switch (name as (typeof visitorNames)[number]) {
      case '$geoip_disable':
        facts.isGeoipDisabled = isTruthy(JSON.parse(propertiesJson.slice(valueStart, end)))
        return undefined
      case '$host':
      case '$timezone':
        return undefined
      case '$set':
      case '$set_once':
        return stripIdentifyingMembers(propertiesJson.slice(valueStart, end))
      default:
        return null
    }
  })
  return { facts, strippedJson }
}

/** The text of an object without what identifies the visitor; undefined when there is nothing to remove. */
export function stripIdentifyingMembers(text: string): string | undefined {
  if (text.charCodeAt(0) !== openBrace) return undefined
  const members = findMembersNamed(text, identifying)
  return members.length === 0 ? undefined : editMembers(text, members, () => null)
}

/**
 * An event of cookieless mode without what identifies its visitor, and the facts about the visitor that were removed.
 * @param members as for `readVisitor`.
 */
export function extractVisitor(
  event: CapturedEvent,
  members?: readonly JsonMember[],
): { readonly event: CapturedEvent; readonly visitor: VisitorFacts } {
  const { setJson, setOnceJson, ip } = event
  const { facts, strippedJson } = readVisitor(event.propertiesJson, members)
  if (facts.ip === '') facts.ip = ip
  const stripped = {
    ...event,
    ip: '',
    propertiesJson: strippedJson,
    setJson: setJson === null ? null : (stripIdentifyingMembers(setJson) ?? setJson),
    setOnceJson: setOnceJson === null ? null : (stripIdentifyingMembers(setOnceJson) ?? setOnceJson),
  }
  return { event: stripped, visitor: facts }
}

/** Returns what to add to an event's record; null when the visitor is settled later or the event may be dropped. */
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

/**
 * Limits each text that is hashed for a visitor; browsers and pages send far shorter texts. Hashing takes a millisecond per
 * 100 KB, during which other requests wait.
 */
const partCharsMax = 4_096

/** The string value of a member, truncated to `partCharsMax` characters; '' for a value that is not a string. */
function readTextAt(text: string, start: number, end: number): string {
  if (text.charCodeAt(start) !== quote) return ''
  const value = readKeyAt(text, start, text.charCodeAt(end - 1) === quote ? end : findStringEnd(text, start))
  return value.length <= partCharsMax ? value : value.slice(0, partCharsMax)
}

const quote = 0x22
const openBrace = 0x7b
