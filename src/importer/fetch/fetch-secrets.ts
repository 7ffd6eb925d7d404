// Reads the secrets of a source from environment variables, or from the file that NAME_FILE names. Never from command-line
// options, which every process on the machine can read. Secrets are never written to a job folder or a log.

import { readFileSync } from 'node:fs'
import { FetchStop } from './fetch-faults.ts'

export type FetchEnvironment = Readonly<Record<string, string | undefined>>

/** @throws FetchStop when the file cannot be read. @returns null when neither variable is set. */
export function findSecret(env: FetchEnvironment, name: string): string | null {
  const value = env[name]
  if (value !== undefined && value !== '') return value
  const path = env[`${name}_FILE`]
  if (path === undefined || path === '') return null
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw new FetchStop(`${name}_FILE cannot be read (${(cause as NodeJS.ErrnoException).code ?? 'unreadable'}).`)
  }
}

export function requireSecret(env: FetchEnvironment, name: string, what: string): string {
  const secret = findSecret(env, name)
  if (secret === null) throw new FetchStop(`Set ${name} (or ${name}_FILE, a file that holds it) to ${what}.`)
  return secret
}

export interface BasicCredentials {
  /** The header. */
  readonly authorization: string
  /** The secrets in every form in which a source may echo them. */
  readonly secrets: readonly string[]
}

export function createBasicCredentials(user: string, password: string): BasicCredentials {
  const base64 = Buffer.from(`${user}:${password}`).toString('base64')
  return { authorization: `Basic ${base64}`, secrets: [user, password, base64, base64.replace(/=+$/, '')] }
}

/** A text from the source for the user: on one line, with every secret masked. An HTML page is reduced to its title. */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  const forms = secrets.filter(secret => secret !== '').flatMap(secret => [secret, encodeURIComponent(secret)])
  // Masks the longest forms first: once a part of a longer form is masked, the search no longer finds that form.
  const masked = forms
    .toSorted((a, b) => b.length - a.length)
    .reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
  return (isPage.test(masked) ? readPageTitle(masked) : masked)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 300)
}

const isPage = /^[\ufeff\s]*<(?:!doctype html|html|head|body|title|h1)\b/i

/** The title of the page or, without a title, its first text. */
function readPageTitle(page: string): string {
  const title = /<title[^>]*>([^<]*)/i.exec(page)?.[1]?.trim()
  if (title !== undefined && title !== '') return title
  const texts = page.replace(/<(script|style)\b[\s\S]*?(?:<\/\1>|$)/gi, '').split(/<[^>]*>?/)
  return texts.find(text => text.trim() !== '') ?? ''
}
