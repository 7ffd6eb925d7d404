// Adds to an event its address, the address's location, and the maps that describe the person. The draft adds them to the
// stored text; `person-update.ts` applies the maps to the person.

import {
  buildPersonSetMaps,
  copyOwnKeys,
  osFromOsName,
  readClientSetMap,
} from '#core/processing/properties/mapped-properties.ts'
import type { CookielessVisitor } from '../events/captured-event.ts'
import { groupEventNames } from '../events/event-names.ts'
import { isTruthy } from '../events/group-identity.ts'
import type { PropertiesDraft } from '../events/properties-draft.ts'
import { type GeoipLocation, type GeoipProperties, geoipKeys, toGeoipProperties } from '../geoip.ts'
import type { JsonObject } from '../json.ts'
import type { Project } from '../project.ts'
import type { ParsedEvent } from './parse-chunk.ts'

/** Returns the properties to add for an address; null when its location is unknown. */
export type LookUpGeoip = (address: string) => GeoipProperties | null

/** Returns a function that looks up each address only once. @param lookUp null for an unknown address. */
export function cacheGeoipLookups(lookUp: (address: string) => GeoipLocation | null): LookUpGeoip {
  const known = new Map<string, GeoipProperties | null>()
  return address => {
    let properties = known.get(address)
    if (properties === undefined) {
      const location = lookUp(address)
      properties = location === null ? null : toGeoipProperties(location)
      known.set(address, properties)
    }
    return properties
  }
}

/** How an event is tied to a person. `read_only`: an AI event, which reads the person but writes nothing. */
export type ProfileUse = 'full' | 'read_only' | 'personless' | 'forced_off'

/**
 * Adds `$ip`, `$sent_at` and the location of the address. An imported event of any lane does not get the sender's address,
 * which would locate it where the importer runs. If its job asks for look-ups, it gets the location of its recorded
 * address, even with `$geoip_disable`, unless it already has a location. An event of cookieless mode has no address, only
 * the location found at the edge. Source: docs/wire/ingestion.md 6.8, 7, 13; docs/wire/import.md 3.8.
 */
export function addAddressAndLocation(
  project: Project,
  { geoipOf, looksUpImport }: { readonly geoipOf: LookUpGeoip; readonly looksUpImport: boolean },
  item: ParsedEvent,
  draft: PropertiesDraft,
): GeoipProperties | null {
  const { event, properties } = item
  if (event.sentAtMs !== null) draft.set('$sent_at', formatInstant(event.sentAtMs))
  const isImported = event.historicalMigration
  const sent = properties.$ip
  let address = typeof sent === 'string' ? sent : ''
  if (sent === undefined || !isTruthy(sent)) {
    address = event.ip
    if (address !== '' && !isImported && !project.anonymizeIps) draft.set('$ip', address)
  }
  if (project.anonymizeIps) draft.remove('$ip')
  if (isImported) {
    const wasRecorded = typeof sent === 'string' && address === sent
    if (!looksUpImport || !wasRecorded || hasLocation(properties)) return null
  } else if (properties.$geoip_disable !== undefined && isTruthy(properties.$geoip_disable)) return null
  if (!project.geoipEnabled) return null
  const geoip = event.visitor === null ? lookUpAddress(geoipOf, address) : readLocation(event.visitor)
  if (geoip !== null) for (const key of Object.keys(geoip.event)) draft.set(key, geoip.event[key]!)
  return geoip
}

function lookUpAddress(geoipOf: LookUpGeoip, address: string): GeoipProperties | null {
  return address === '' ? null : geoipOf(address)
}

function readLocation({ location }: CookielessVisitor): GeoipProperties | null {
  return location === null ? null : toGeoipProperties(location)
}

function hasLocation(properties: JsonObject): boolean {
  return geoipKeys.some(key => properties[`$geoip_${key}`] !== undefined)
}

/** The latest result of `formatInstant`, cached because all events of a request have the same send time. */
let lastInstant = { timeMs: 0, text: '1970-01-01T00:00:00Z' }

/** RFC 3339 in UTC; a whole second has no fraction. */
function formatInstant(timeMs: number): string {
  if (timeMs === lastInstant.timeMs) return lastInstant.text
  const precise = new Date(timeMs).toISOString()
  const text = precise.endsWith('.000Z') ? `${precise.slice(0, -5)}Z` : precise
  lastInstant = { timeMs, text }
  return text
}

export interface UpdateMaps {
  readonly set: JsonObject | null
  readonly setOnce: JsonObject | null
}

const noMaps: UpdateMaps = { set: null, setOnce: null }

/**
 * Adds the person maps to the stored event, and returns them for its person.
 * Source: docs/wire/ingestion.md 6.6, 6.7, 7.
 */
export function addPersonSetMaps(
  item: ParsedEvent,
  keys: readonly string[],
  geoip: GeoipProperties | null,
  use: ProfileUse,
  draft: PropertiesDraft,
): UpdateMaps {
  const { event, properties } = item
  const isMapped = event.name !== '$snapshot' && event.name !== '$performance_event'
  const os = isMapped ? osFromOsName(properties) : undefined
  if (os !== undefined) draft.set('$os', os)
  if (use !== 'full' || groupEventNames.has(event.name)) {
    draft.remove('$set')
    draft.remove('$set_once')
    if (use !== 'read_only') draft.remove('$unset')
    return noMaps
  }
  const clientSet = readClientSetMap(properties.$set, item.set)
  const clientSetOnce = readClientSetMap(properties.$set_once, item.setOnce)
  const lifted = isMapped ? buildPersonSetMaps(properties, keys, clientSet, clientSetOnce) : null
  const set = mergeGeoip(lifted === null ? clientSet : lifted.set, geoip?.set)
  const setOnce = mergeGeoip(lifted === null ? clientSetOnce : lifted.setOnce, geoip?.setOnce)
  if (set !== null && set !== properties.$set) draft.set('$set', set)
  if (setOnce !== null && setOnce !== properties.$set_once) draft.set('$set_once', setOnce)
  return { set, setOnce }
}

/** The looked-up location overwrites a location that the client sent. */
function mergeGeoip(map: JsonObject | null, geoip: JsonObject | undefined): JsonObject | null {
  if (geoip === undefined) return map
  const merged = { ...map }
  copyOwnKeys(merged, geoip)
  return merged
}
