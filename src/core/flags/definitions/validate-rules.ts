// Decides whether a document of version 2 may be stored as written: it must be readable, and must not contain anything that
// is readable but certainly a mistake. Like `validate-flag.ts` it only restricts writes.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '../../json.ts'
import type { FlagIssue } from './flag-issue.ts'
import { readRules } from './read-rules.ts'
import type { RulesDocument } from './rules-document.ts'
import { createPatternBudget, findRegexProblem } from './validate-filter.ts'

/** The maximum size of one rule's `metadata` as compact JSON, in UTF-8. */
export const metadataBytesMax = 16 * 1024

/** PostHog's event stores write these for booleans, so such a text would be indistinguishable from a boolean. */
const reservedTexts: readonly JsonValue[] = ['$true', '$false']

/**
 * @param filters a document of version 2.
 * @param stored the document that `filters` replaces, of either version; null for a new flag.
 * @returns the first fault of the document, or all other issues. Source: docs/wire/private-api.md 4.3.
 */
export function validateRules(filters: JsonObject, stored: JsonObject | null): FlagIssue[] {
  const read = readRules(filters)
  if (!read.ok) return [read.error]
  const before = stored === null ? null : readRules(stored)
  const { returnType } = read.value
  if (before?.ok && before.value.returnType !== returnType) {
    const message = `The flag returns a ${before.value.returnType}; its return type cannot be changed.`
    return [createIssue('filters.return_type', message)]
  }
  return [
    ...validateReservedTexts(read.value),
    ...validatePatterns(read.value, new Set(before?.ok ? listPatterns(before.value) : [])),
    ...validateMetadata(filters),
  ]
}

function validateReservedTexts({ defaultValue, rules }: RulesDocument): FlagIssue[] {
  const values: [path: string, value: JsonValue][] = [['filters.default_value', defaultValue]]
  for (const [index, rule] of rules.entries()) {
    const path = `filters.rules.${index}`
    if (rule.type !== 'experiment') values.push([`${path}.value`, rule.value])
    else for (const [at, { value }] of rule.variants.entries()) values.push([`${path}.variants.${at}.value`, value])
  }
  return values
    .filter(([, value]) => reservedTexts.includes(value))
    .map(([path, value]) => createIssue(path, `The string ${value} is reserved for booleans.`))
}

/**
 * A pattern that the stored document already has is not refused again, since otherwise no other part of the flag could be
 * changed.
 */
function validatePatterns(document: RulesDocument, stored: ReadonlySet<string>): FlagIssue[] {
  const budget = createPatternBudget()
  return document.rules.flatMap(({ predicates }, index) =>
    predicates.flatMap(({ operator, value }, at) => {
      if (!isPattern(operator) || typeof value !== 'string') return []
      const problem = findRegexProblem(value, budget)
      if (problem === null || stored.has(value)) return []
      return [createIssue(`filters.rules.${index}.targeting.properties.${at}.value`, problem)]
    }),
  )
}

function listPatterns({ rules }: RulesDocument): string[] {
  return rules.flatMap(({ predicates }) =>
    predicates.flatMap(({ operator, value }) => (isPattern(operator) && typeof value === 'string' ? [value] : [])),
  )
}

function isPattern(operator: string): boolean {
  return operator === 'regex' || operator === 'not_regex'
}

function validateMetadata(filters: JsonObject): FlagIssue[] {
  return listRules(filters).flatMap((rule, index) => {
    const metadata = isJsonObject(rule) ? getOwnValue(rule, 'metadata') : undefined
    if (metadata === undefined || Buffer.byteLength(JSON.stringify(metadata)) <= metadataBytesMax) return []
    return [
      createIssue(
        `filters.rules.${index}.metadata`,
        `The metadata of a rule may have at most ${metadataBytesMax} bytes.`,
      ),
    ]
  })
}

function listRules(filters: JsonObject): readonly JsonValue[] {
  const rules = getOwnValue(filters, 'rules')
  return Array.isArray(rules) ? rules : []
}

function createIssue(path: string, message: string): FlagIssue {
  return { path, code: 'invalid_input', message }
}
