// Reads the body of a private API request: bytes → JSON, checked against the endpoint's schema, or the error to answer.

import type { TSchema } from 'typebox'
import { isJsonObject, type JsonObject, parseJson, toPlainNumbers } from '#core/json.ts'
import { findRepeatedKey, isNestedDeeperThan } from '#core/json-text.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { PostHogFields } from '#wire/management/posthog-fields.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { createInvalidError, createInvalidInputError, createRequiredError } from './answers.ts'
import {
  type AcceptedFields,
  findMisspeltMember,
  findUnacceptedField,
  listSchemaPropertyNames,
} from './misspelt-names.ts'
import { isMultipart, isTooMuchToParse, jsonLimits, parseForm } from './request-form.ts'
import { type CompileSchema, findFirstProblems, type SchemaProblem } from './schema-problems.ts'

/** A cohort's groups may be nested 64 deep, two levels of JSON each. Recursive code can handle far more than this. */
const nestingMax = 300

export type BodyParser = (bytes: Buffer, contentType: string) => Promise<Result<JsonObject, WireError>>

export interface BodyParserOptions {
  /** The largest JSON body; the route's own limit may be larger, for forms. */
  readonly jsonBytesMax: number
  readonly takesForms: boolean
  /** Fields of PostHog's object that the schema lacks. */
  readonly postHogFields?: PostHogFields
  /** Unknown names with an obvious meaning, each with the schema's name for that meaning. */
  readonly wrongNames?: Readonly<Record<string, string>>
  /** The field that the error names if an object of the body has a duplicate key; null when duplicates are allowed. */
  readonly uniqueKeysIn?: (body: JsonObject) => string | null
}

/**
 * Compiles the schema at the first body, because the compiler takes 8 MiB and most processes never need it. An empty body
 * means `{}`. A field that the schema does not name is refused, unless tools send it back as they received it.
 * @param answerSchema the schema of the endpoint's answer: a client may send back every field that it received.
 */
export function createBodyParser(
  schema: TSchema,
  answerSchema: TSchema | null,
  options: BodyParserOptions,
): BodyParser {
  let compiled: ReturnType<typeof loadCachingCompiler> | undefined
  const taken: AcceptedFields = {
    known: listSchemaPropertyNames(schema),
    answered: new Set(answerSchema === null ? [] : listSchemaPropertyNames(answerSchema)),
    ofPostHog: options.postHogFields ?? { withoutEffect: [], onlyOff: [] },
    wrong: options.wrongNames ?? {},
  }
  return async (bytes, contentType) => {
    const isForm = options.takesForms && isMultipart(contentType)
    if (!isForm && bytes.length > options.jsonBytesMax) return err(jsonTooLargeError(options.jsonBytesMax))
    const parsed = isForm ? await parseForm(bytes, contentType, schema) : parseBody(bytes)
    if (!parsed.ok) return parsed
    const strictField = isForm ? null : (options.uniqueKeysIn?.(parsed.value) ?? null)
    const repeated = strictField === null ? null : findRepeatedKey(bytes.toString('utf8'))
    if (repeated !== null)
      return err(createInvalidInputError(strictField!, `An object contains the key "${repeated.slice(0, 80)}" twice.`))
    const untaken = findUnacceptedField(parsed.value, taken) ?? findMisspeltMember(parsed.value, schema)
    if (untaken !== null) return err(untaken)
    compiled ??= loadCachingCompiler()
    const compile = await compiled
    const validator = compile(schema)
    // Checks the body twice, the second time with plain numbers: a number that is kept as its literal is an object to the
    // validator.
    for (const face of [() => parsed.value, () => toPlainNumbers(parsed.value)]) {
      const value = face()
      if (!validator.Check(value)) return err(toFirstError(findFirstProblems(schema, value, compile)))
    }
    return parsed
  }
}

/** Loads the schema compiler, with a cache of the compiled schemas: of whole bodies, and of parts where a body failed. */
async function loadCachingCompiler(): Promise<CompileSchema> {
  const { Compile } = await import('typebox/compile')
  const compiled = new WeakMap<TSchema, ReturnType<typeof Compile>>()
  return schema => {
    const known = compiled.get(schema) ?? Compile(schema)
    compiled.set(schema, known)
    return known
  }
}

function jsonTooLargeError(bytesMax: number): WireError {
  const detail = `A JSON body may have ${bytesMax} bytes; send larger lists as a csv file in multipart/form-data (curl -F csv=@ids.csv).`
  return wireError(413, 'payload_too_large', detail)
}

const tooMuchToParse = wireError(
  413,
  'payload_too_large',
  `A JSON body may have ${jsonLimits.fieldCountMax} fields, objects and lists, and ${jsonLimits.valueCountMax} values.`,
)

function parseBody(bytes: Buffer): Result<JsonObject, WireError> {
  const text = bytes.toString('utf8')
  if (text.trim() === '') return ok({})
  if (isNestedDeeperThan(text, nestingMax))
    return err(createInvalidError(null, 'The request body is nested too deeply.'))
  if (isTooMuchToParse(text)) return err(tooMuchToParse)
  try {
    const value = parseJson(text)
    return isJsonObject(value) ? ok(value) : err(createInvalidError(null, 'The request body must be a JSON object.'))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return err(createInvalidError(null, `The request body is not valid JSON${describeSyntaxError(error)}.`))
  }
}

/** Takes the reason and the position, if there are any, from Node's message, without its excerpt of the body. */
function describeSyntaxError({ message }: SyntaxError): string {
  const [, reason, place] = /^([^"]+?) in JSON at position \d+(?: (\(line \d+ column \d+\)))?/.exec(message) ?? []
  if (reason !== undefined) return `: ${reason}${place === undefined ? '' : ` ${place}`}`
  const start = /^Unexpected (?:token '.'|end of JSON input)/su.exec(message)
  return start === null ? '' : `: ${start[0]}`
}

/**
 * Makes one error for the first place that does not match. If the schema is a union at that place, the reports of all its
 * members become one message.
 */
function toFirstError(problems: readonly SchemaProblem[]): WireError {
  const first = problems[0]!
  const place = first.instancePath.slice(1).replaceAll('/', '.')
  if (first.keyword === 'required') {
    const [property] = (first.params as { requiredProperties: string[] }).requiredProperties
    return createRequiredError(place === '' ? property! : `${place}.${property}`)
  }
  const here = problems.filter(problem => problem.instancePath === first.instancePath)
  const limit = here.find(problem => !['type', 'anyOf', 'const'].includes(problem.keyword))
  if (limit !== undefined) return createInvalidInputError(place, `This value ${limit.message}.`)
  const allowed = here.flatMap(({ params }) => ('allowedValue' in params ? [String(params.allowedValue)] : []))
  if (allowed.length > 0) return createInvalidInputError(place, `Must be one of: ${allowed.join(', ')}.`)
  const types = here.flatMap(({ params }) => ('type' in params ? [String(params.type)] : []))
  return createInvalidError(place, `Must be of type ${types.join(' or ')}.`)
}
