// Decides whether the filters of a dynamic cohort may be stored as written, and reports everything that is wrong.
// `validate-filter.ts` checks single filters, `validate-references.ts` what they refer to. The evaluator does not rely
// on any of it.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '../../json.ts'
import { createFlagIssue, type FlagIssue, type FlagIssueCode, findShapeIssues } from './flag-issue.ts'
import { MisspeltFields } from './misspelt-fields.ts'
import { createPatternBudget, validateFilter } from './validate-filter.ts'

/** Largest number of groups between the top group and an entry. Source: docs/wire/evaluation.md 5.11. */
export const cohortDepthMax = 64
/** Bounds the filters and groups of one cohort, since every evaluation may test each of them. */
export const cohortEntryCountMax = 1_000

const topTypes = ['OR', 'AND']
const groupTypes = [...topTypes, 'property']
const leafTypes = ['person', 'person_metadata', 'cohort', 'flag']
/** PostHog's types for what a person did. Such data is not stored by person here. */
const behaviouralTypes = ['behavioral', 'realtime']

/**
 * All issues: misspelt fields first, the rest in the order of the tree; empty when the filters may be stored. Do not
 * call it for a static cohort, whose filters mean nothing. Source: docs/wire/evaluation.md 5.9.1, 5.11; which mistakes
 * are refused: ours.
 */
export function validateCohortFilters(filters: JsonValue): FlagIssue[] {
  if (!isJsonObject(filters)) return [createFlagIssue('filters', 'invalid', 'Filters must be an object.')]
  const path = 'filters.properties'
  const top = getOwnValue(filters, 'properties')
  if (top === undefined || top === null)
    return [
      createFlagIssue(
        path,
        'required',
        'A cohort that is not static needs filters: {"properties": {"type", "values"}}.',
      ),
    ]
  if (!isJsonObject(top))
    return [createFlagIssue(path, 'invalid', 'Must be an object with a type, OR or AND, and values.')]
  return new TreeValidation().validateTop(top, path)
}

class TreeValidation {
  readonly #patterns = createPatternBudget()
  readonly #misspelt = new MisspeltFields()
  #entryCount = 0

  validateTop(top: JsonObject, path: string): FlagIssue[] {
    const type = getOwnValue(top, 'type')
    const isKnown = typeof type === 'string' && topTypes.includes(type)
    const issues = [
      ...(isKnown
        ? []
        : [
            createFlagIssue(`${path}.type`, chooseIssueCode(type), 'The type of the filters of a cohort is OR or AND.'),
          ]),
      ...this.#validateValues(top, path, 0),
    ]
    return [...this.#misspelt.issues, ...issues]
  }

  /** @param depth number of groups between the top group and the entries. */
  #validateValues(group: JsonObject, path: string, depth: number): FlagIssue[] {
    this.#misspelt.checkCohortEntry(group, 'group', path)
    const values = getOwnValue(group, 'values')
    if (!Array.isArray(values))
      return [
        createFlagIssue(
          `${path}.values`,
          chooseIssueCode(values),
          'A group of filters needs a list of values; it may be empty.',
        ),
      ]
    if (depth > cohortDepthMax) {
      return values.length === 0
        ? []
        : [
            createFlagIssue(
              `${path}.values`,
              'invalid_input',
              `Groups may be nested at most ${cohortDepthMax} levels deep.`,
            ),
          ]
    }
    const issues: FlagIssue[] = []
    for (const [index, entry] of values.entries()) {
      if (++this.#entryCount > cohortEntryCountMax) {
        // Reported once, at the first entry over the limit; the rest is not checked.
        if (this.#entryCount === cohortEntryCountMax + 1) issues.push(createTooManyIssue(`${path}.values.${index}`))
        break
      }
      issues.push(...this.#validateEntry(entry, `${path}.values.${index}`, depth))
    }
    return issues
  }

  #validateEntry(entry: JsonValue, path: string, depth: number): FlagIssue[] {
    if (!isJsonObject(entry))
      return [createFlagIssue(path, 'invalid', 'A filter or a group of filters must be an object.')]
    const type = getOwnValue(entry, 'type')
    if (typeof type === 'string' && groupTypes.includes(type)) return this.#validateValues(entry, path, depth + 1)
    if (typeof type === 'string' && leafTypes.includes(type)) return this.#validateLeaf(entry, path)
    if (typeof type === 'string' && behaviouralTypes.includes(type)) {
      const message = `Filters of type ${type} are not supported: they would match no one.`
      return [createFlagIssue(`${path}.type`, 'invalid_input', message)]
    }
    const message = `The type must be one of ${groupTypes.join(', ')} for a group, or ${leafTypes.join(', ')} for a filter.`
    return [createFlagIssue(`${path}.type`, chooseIssueCode(type), message)]
  }

  #validateLeaf(leaf: JsonObject, path: string): FlagIssue[] {
    // The evaluator treats any entry with a list of values as a group.
    if (Array.isArray(getOwnValue(leaf, 'values')))
      return [
        createFlagIssue(
          `${path}.values`,
          'invalid_input',
          'A filter has a value; values belong to groups of type OR or AND.',
        ),
      ]
    this.#misspelt.checkCohortEntry(leaf, 'filter', path)
    const negation = getOwnValue(leaf, 'negation')
    return [
      ...validateFilter(leaf, path, this.#patterns),
      ...findShapeIssues(negation, `${path}.negation`, typeof negation === 'boolean', 'true, false'),
    ]
  }
}

function createTooManyIssue(path: string): FlagIssue {
  return createFlagIssue(
    path,
    'invalid_input',
    `A cohort may have at most ${cohortEntryCountMax} filters and groups of filters.`,
  )
}

function chooseIssueCode(value: JsonValue | undefined): FlagIssueCode {
  if (value === undefined || value === null) return 'required'
  return typeof value === 'string' ? 'invalid_input' : 'invalid'
}
