// Finds the value of a person property in one evaluation: from the request, from the GeoIP look-up, from the stored person,
// or derived. It reads these sources one by one instead of merging them, because most requests read only a few keys.
// Source: docs/wire/evaluation.md 5.8, 6.

import type { JsonValue, PropertyBag } from '../../json.ts'

/** A property that some flag reads, with everything about it that does not depend on the request. */
export interface PersonKey {
  readonly name: string
  /** Index of the property's value among the values that one evaluation remembers. */
  readonly position: number
  /** Every object inherits a member of this name (as with `constructor`), so only an own property counts. */
  readonly isOnPrototype: boolean
  readonly isDistinctId: boolean
  readonly isGeoip: boolean
  /**
   * The property that is read when this one is absent: `$os` and `$os_name` replace each other; `$initial_x` is copied from
   * `x`.
   */
  readonly substitute: PersonKey | null
}

const geoipPropertyNames = [
  '$geoip_city_name',
  '$geoip_country_name',
  '$geoip_country_code',
  '$geoip_continent_name',
  '$geoip_continent_code',
  '$geoip_postal_code',
  '$geoip_time_zone',
] as const

const initialSources =
  '$app_build $app_name $app_namespace $app_version $browser $browser_version $device_type $current_url $pathname $os ' +
  '$os_version $referring_domain $referrer $screen_height $screen_width $viewport_height $viewport_width ' +
  '$raw_user_agent utm_source utm_medium utm_campaign utm_content utm_term gclid gad_source gclsrc dclid gbraid wbraid ' +
  'fbclid msclkid twclid li_fat_id mc_cid igshid ttclid rdt_cid epik qclid sccid irclid _kx'
const initialSourceOf = new Map(
  initialSources.split(' ').map(name => [`$initial_${name.startsWith('$') ? name.slice(1) : name}`, name]),
)
const twinOf = new Map([
  ['$os', '$os_name'],
  ['$os_name', '$os'],
])

/** Collects the keys that a project's flags read; one object per key, numbered from 0. */
export class PersonKeys {
  readonly #known = new Map<string, PersonKey>()
  #allNames: ReadonlySet<string> | null = null

  get count(): number {
    return this.#known.size
  }

  /** All names that may be read from a stored person, substitutes included. */
  names(): ReadonlySet<string> {
    if (this.#allNames === null) {
      const names = new Set(this.#known.keys())
      for (let { substitute } of this.#known.values())
        for (; substitute !== null; substitute = substitute.substitute) names.add(substitute.name)
      this.#allNames = names
    }
    return this.#allNames
  }

  readsGeoip(): boolean {
    return geoipPropertyNames.some(name => this.#known.has(name))
  }

  key(name: string): PersonKey {
    return this.#known.get(name) ?? this.#add(name)
  }

  #add(name: string): PersonKey {
    this.#allNames = null
    const source = initialSourceOf.get(name)
    const twin = twinOf.get(name)
    let substitute: PersonKey | null = null
    if (source !== undefined) substitute = this.key(source)
    else if (twin !== undefined) substitute = { ...createPlainKey(twin), position: -1, substitute: null }
    const key = { ...createPlainKey(name), position: this.#known.size, substitute }
    this.#known.set(name, key)
    return key
  }
}

function createPlainKey(name: string): Omit<PersonKey, 'position' | 'substitute'> {
  return {
    name,
    isOnPrototype: name in Object.prototype,
    isDistinctId: name === 'distinct_id',
    isGeoip: (geoipPropertyNames as readonly string[]).includes(name),
  }
}

/** Values that take precedence over the stored person's values. */
export interface PersonLayers {
  readonly request: PropertyBag
  readonly geoip: PropertyBag | null
  readonly distinctId: string
}

/**
 * The value that the request alone decides (its own property, the GeoIP look-up, its distinct id); undefined when the
 * stored person must be read.
 */
export function readRequestedProperty(layers: PersonLayers, key: PersonKey): JsonValue | undefined {
  const own = readPersonProperty(layers.request, key)
  if (key.isGeoip && layers.geoip !== null && (own === undefined || own === null)) {
    const located = readPersonProperty(layers.geoip, key)
    if (located !== undefined) return located
  }
  if (own !== undefined) return own
  return key.isDistinctId && layers.distinctId !== '' ? layers.distinctId : undefined
}

/**
 * The layer (the request, the GeoIP look-up or the distinct id) that gave `readRequestedProperty` its value, found by reading
 * again without some layers.
 */
export function findPropertyOrigin(layers: PersonLayers, key: PersonKey): 'request' | 'geoip' | 'distinct_id' {
  const value = readRequestedProperty(layers, key)
  const withoutId = { ...layers, distinctId: '' }
  if (readRequestedProperty({ ...withoutId, geoip: null }, key) === value) return 'request'
  return readRequestedProperty(withoutId, key) === value ? 'geoip' : 'distinct_id'
}

export function readPersonProperty(bag: PropertyBag, key: PersonKey): JsonValue | undefined {
  return key.isOnPrototype && !Object.hasOwn(bag, key.name) ? undefined : bag[key.name]
}
