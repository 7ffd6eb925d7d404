// Maps the context of Segment's messages to properties. Source: docs/wire/import.md §1.3 (context).

import { getOwnValue, isJsonObject, type JsonObject } from '#core/json.ts'
import { isEmptyValue, putProperty, readObjectField, readTextField } from '#importer/records/record-fields.ts'

/** For each object in the context: the property that each of its fields becomes. */
const targets: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  os: { name: '$os', version: '$os_version' },
  device: {
    id: '$device_id',
    manufacturer: '$device_manufacturer',
    model: '$device_model',
    name: '$device_name',
  },
  app: { name: '$app_name', version: '$app_version', build: '$app_build', namespace: '$app_namespace' },
  library: { name: '$lib', version: '$lib_version' },
  screen: { width: '$screen_width', height: '$screen_height', density: '$screen_density' },
}

/** The property that each field of the context itself becomes. */
const ownTargets = { ip: '$ip', locale: '$locale', timezone: '$timezone', userAgent: '$raw_user_agent' }

export function putContextProperties(properties: JsonObject, context: JsonObject): void {
  for (const [field, target] of Object.entries(ownTargets)) putProperty(properties, target, getOwnValue(context, field))
  for (const [part, byField] of Object.entries(targets)) {
    const from = readObjectField(context, part)
    for (const [field, target] of Object.entries(byField)) putProperty(properties, target, getOwnValue(from, field))
  }
  putProperty(properties, '$device_type', toDeviceType(readTextField(readObjectField(context, 'device'), 'type')))
  for (const [field, value] of Object.entries(readObjectField(context, 'campaign')))
    putProperty(properties, `utm_${field === 'name' ? 'campaign' : field}`, value)
  putPageProperties(properties, readObjectField(context, 'page'))
}

const readObjects: ReadonlySet<string> = new Set([...Object.keys(targets), 'campaign', 'page'])

/**
 * Parts of the context that no property carries, such as `network` or `page.search`, or an `os` that is a text.
 * @param alsoRead parts that the message itself uses.
 */
export function listUnreadContextFields(context: JsonObject, alsoRead: readonly string[]): string[] {
  const unread = Object.entries(context).flatMap(([key, value]) => {
    const isPart = readObjects.has(key) && (isJsonObject(value) || isEmptyValue(value))
    return Object.hasOwn(ownTargets, key) || isPart || alsoRead.includes(key) ? [] : [key]
  })
  for (const [part, names] of Object.entries(readFields))
    for (const field of Object.keys(readObjectField(context, part)))
      if (!names.includes(field)) unread.push(`${part}.${field}`)
  return unread
}

const readFields: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(Object.entries(targets).map(([part, byField]) => [part, Object.keys(byField)])),
  device: [...Object.keys(targets.device!), 'type'],
  page: ['url', 'path', 'referrer', 'title'],
}

/**
 * Moves the fields of a page to the properties that live events have. If `page` is `properties` itself, its fields
 * overwrite properties that come from the context.
 */
export function putPageProperties(properties: JsonObject, page: JsonObject): void {
  const moved = { url: '$current_url', path: '$pathname', referrer: '$referrer', title: 'title' }
  for (const [field, target] of Object.entries(moved)) {
    const value = getOwnValue(page, field)
    if (page === properties && target !== field) delete properties[field]
    putProperty(properties, target, value)
  }
  const url = readTextField(properties, '$current_url')
  putProperty(properties, '$host', url === null ? null : URL.parse(url)?.host)
}

const deviceTypes: Readonly<Record<string, string>> = {
  ios: 'Mobile',
  android: 'Mobile',
  mobile: 'Mobile',
  tablet: 'Tablet',
  desktop: 'Desktop',
}

/** Mobile SDKs send the operating system as the device type, whereas live events have the kind of device. */
function toDeviceType(type: string | null): string | null {
  return type === null ? null : (deviceTypes[type.toLowerCase()] ?? type)
}
