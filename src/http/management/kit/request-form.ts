// Turns a multipart/form-data body, from a browser's form or a script's file upload, into the same fields in JSON.

import type { TSchema } from 'typebox'
import { type JsonObject, type JsonValue, parseJson, setOwnValue } from '#core/json.ts'
import { hasMoreFieldsThan, hasMoreValuesThan, isNestedDeeperThan } from '#core/json-text.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '#wire/wire-error.ts'
import { createInvalidError } from './answers.ts'

/**
 * Reading thousands of tiny parts, or a megabyte of part headers, would block the event loop; our forms have a handful of
 * parts.
 */
const partCountMax = 32
const partHeadBytesMax = 4 * 1024
const nestingMax = 300
/**
 * The most fields of JSON (each object and list also counts as a field), and the most values, which may be in long lists.
 * JSON at either maximum takes about 40 ms to parse and check, even if the literals of its numbers are kept. Even the
 * largest flag has fewer fields. Source: ours.
 */
export const jsonLimits = { fieldCountMax: 32 * 1024, valueCountMax: 128 * 1024 } as const

/** Whether a JSON text exceeds `jsonLimits`, so that it must not be parsed on the event loop. */
export function isTooMuchToParse(text: string): boolean {
  const { fieldCountMax, valueCountMax } = jsonLimits
  return hasMoreFieldsThan(text, fieldCountMax) || hasMoreValuesThan(text, valueCountMax)
}

export function isMultipart(contentType: string): boolean {
  return /^\s*multipart\/form-data\s*;/i.test(contentType)
}

/**
 * Fields and files become text. When the schema wants another type, the text is read as JSON (`true`, `{…}`); text that is
 * not JSON stays text, and the schema refuses it later. If a field is repeated, its last value counts.
 */
export async function parseForm(
  bytes: Buffer,
  contentType: string,
  schema: TSchema,
): Promise<Result<JsonObject, WireError>> {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  if (boundary === null) return err(unreadable)
  const tooMuch = findFormSizeProblem(bytes, `--${boundary[1] ?? boundary[2]}`)
  if (tooMuch !== null) return err(createInvalidError(null, tooMuch))
  const form = await parseFormData(bytes, contentType)
  if (form === null) return err(unreadable)
  const object: JsonObject = {}
  for (const [name, value] of form) {
    const text = typeof value === 'string' ? value : decodeFileText(new Uint8Array(await value.arrayBuffer()))
    setOwnValue(object, name, isTextField(schema, name) ? text : parseJsonOrText(text))
  }
  return ok(object)
}

const unreadable = createInvalidError(null, 'The request body is not valid multipart/form-data.')

/** Reads the form with Node's own reader; null when it cannot read the body. */
async function parseFormData(bytes: Buffer, contentType: string): Promise<FormData | null> {
  try {
    return await new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } }).formData()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return null
  }
}

/**
 * Decodes the text of a file: UTF-8, or UTF-16, which spreadsheets write. UTF-16 is recognised by its byte order mark
 * or by the zero byte of its first letter.
 */
function decodeFileText(bytes: Uint8Array): string {
  const [first, second] = bytes
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return utf16le.decode(bytes)
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== undefined && second !== 0))
    return utf16be.decode(bytes)
  return utf8.decode(bytes)
}

const [utf8, utf16le, utf16be] = ['utf-8', 'utf-16le', 'utf-16be'].map(name => new TextDecoder(name)) as [
  TextDecoder,
  TextDecoder,
  TextDecoder,
]

/**
 * Returns a message if Node's reader would take too long to read the form, otherwise null.
 * @param mark the delimiter before each part and after the last part.
 */
function findFormSizeProblem(bytes: Buffer, mark: string): string | null {
  let count = 0
  for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + mark.length)) {
    if (++count > partCountMax) return `A form must have fewer than ${partCountMax} fields.`
    const head = bytes.subarray(at, at + partHeadBytesMax)
    if (head.length === partHeadBytesMax && !head.includes('\r\n\r\n'))
      return `The header of each form field must have fewer than ${partHeadBytesMax} bytes.`
  }
  return null
}

/** Whether a field stays text. True also for fields that the schema does not name, since those are ignored later. */
function isTextField(schema: TSchema, name: string): boolean {
  const properties = 'properties' in schema ? (schema.properties as Record<string, TSchema>) : {}
  if (!Object.hasOwn(properties, name)) return true
  return listSchemaTypes(properties[name]!).every(type => type === 'string' || type === 'null')
}

function listSchemaTypes(schema: TSchema): unknown[] {
  if ('anyOf' in schema) return (schema.anyOf as TSchema[]).flatMap(listSchemaTypes)
  return ['type' in schema ? schema.type : undefined]
}

function parseJsonOrText(text: string): JsonValue {
  if (isTooMuchToParse(text) || isNestedDeeperThan(text, nestingMax)) return text
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return text
  }
}
