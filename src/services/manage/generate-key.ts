// Makes new secrets and project API keys: a prefix and 43 characters out of 62, about 256 bits.

import { personalKeyPrefix } from './personal-key-check.ts'

export type RandomBytes = (size: number) => Uint8Array

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const keyLength = 43
/** Bytes with this value or a higher one are discarded, so that every character is equally likely. */
const byteLimit = 256 - (256 % alphabet.length)

export function generateProjectKey(randomBytes: RandomBytes): string {
  return `phc_${generateRandomText(randomBytes)}`
}

/** The secret keys of projects begin with this. */
export const secretKeyPrefix = 'phs_'

/** Whether the text is a personal key or a project's secret key, which must not appear in a browser or an address. */
export function isSecretKey(text: string): boolean {
  return text.startsWith(personalKeyPrefix) || text.startsWith(secretKeyPrefix)
}

export function generateSecretKey(randomBytes: RandomBytes): string {
  return `${secretKeyPrefix}${generateRandomText(randomBytes)}`
}

export function generatePersonalKey(randomBytes: RandomBytes): string {
  return `${personalKeyPrefix}${generateRandomText(randomBytes)}`
}

function generateRandomText(randomBytes: RandomBytes): string {
  let text = ''
  while (text.length < keyLength) {
    for (const byte of randomBytes(keyLength)) {
      if (byte < byteLimit && text.length < keyLength) text += alphabet[byte % alphabet.length]
    }
  }
  return text
}
