// Measures how deep JSON nests, and whether a text holds very many values, without parsing it, so that recursive code (a
// reviver, JSON.stringify, a validator) never gets a text or a value that overflows the stack.

import { ascii } from './ascii.ts'
import { isRawNumber, type JsonObject, type JsonValue, type RawNumber } from './json.ts'

const { quote, comma, colon, openBracket, backslash, closeBracket, openBrace, closeBrace } = ascii

/** Whether lists and objects nest more than `depthMax` deep. The text need not be valid JSON. */
export function nestsDeeperThan(text: string, depthMax: number): boolean {
  if (!opensMoreThan(text, depthMax)) return false
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (inString) {
      if (unit === backslash) index++
      else if (unit === quote) inString = false
    } else if (unit === quote) inString = true
    else if (unit === openBracket || unit === openBrace) {
      depth++
      if (depth > depthMax) return true
    } else if (unit === closeBracket || unit === closeBrace) depth--
  }
  return false
}

/**
 * Whether the text has more opening brackets than `countMax`. Hardly any text has, so this quick search nearly always
 * decides.
 */
function opensMoreThan(text: string, countMax: number): boolean {
  let count = 0
  for (const bracket of '[{')
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1))
      if (++count > countMax) return true
  return false
}

/** Whether lists and objects of a value nest more than `depthMax` deep. It descends no further than that. */
export function isDeeperThan(value: JsonValue, depthMax: number): boolean {
  return mayNest(value) && nestsBeyond(value, depthMax)
}

function nestsBeyond(value: JsonValue[] | JsonObject | RawNumber, depthLeft: number): boolean {
  if (depthLeft === 0) return !isRawNumber(value)
  if (Array.isArray(value)) return value.some(element => mayNest(element) && nestsBeyond(element, depthLeft - 1))
  const object = value as JsonObject
  // By key, since reading the values of an object that was built key by key takes four times as long.
  for (const key of Object.keys(object)) {
    const member = object[key]!
    if (mayNest(member) && nestsBeyond(member, depthLeft - 1)) return true
  }
  return false
}

/**
 * Whether the value may be a list or an object. Also true for a kept number literal, which the caller excludes at the
 * last level.
 */
function mayNest(value: JsonValue): value is JsonValue[] | JsonObject | RawNumber {
  return typeof value === 'object' && value !== null
}

/** Whether the text holds more than `valuesMax` values. A parsed value takes tens of bytes, however short its text. */
export function holdsMoreValuesThan(text: string, valuesMax: number): boolean {
  // A value has at least one character, and another one separates it from the next.
  return text.length >= 2 * valuesMax && hasMoreMarksThan(text, valuesMax - 1, comma)
}

/**
 * Whether the text has more than `fieldsMax` objects, lists and fields of objects together. Parsing and checking each
 * takes about a microsecond, ten times as long as a value in a list.
 */
export function holdsMoreFieldsThan(text: string, fieldsMax: number): boolean {
  return text.length > fieldsMax && hasMoreMarksThan(text, fieldsMax, colon)
}

/** Whether the separators and opening brackets outside strings are more than `countMax` together. */
export function hasMoreMarksThan(text: string, countMax: number, separator: number): boolean {
  let count = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit === quote) index = endOfString(text, index)
    else if (unit === separator || unit === openBracket || unit === openBrace) {
      if (++count > countMax) return true
    }
  }
  return false
}

/** @returns the index of the quote that ends the string that begins at `start`, or of the end of the text. */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit === backslash) index++
    else if (unit === quote) return index
  }
  return text.length
}
