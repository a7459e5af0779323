// Dates, times of day, instants and durations in ISO 8601 notation, as exact integers (LogicalTypes.md, "Temporal Types").

import { decodeInteger, divideDown, encodeInteger, join } from './bytes.js'

const NANOS_PER_SECOND = 1_000_000_000n
const NANOS_PER_DAY = 86_400n * NANOS_PER_SECOND
const UNIT_NANOS = { MILLIS: 1_000_000n, MICROS: 1_000n, NANOS: 1n }
const JULIAN_DAY_OF_EPOCH = 2_440_588n
const MILLIS_PER_DAY = 86_400_000n
const DAYS_PER_MONTH = 30n

const DATE = '(?<year>[+-]?\\d{4,9})-(?<month>\\d\\d)-(?<day>\\d\\d)'
const TIME = '(?<hour>\\d\\d):(?<minute>\\d\\d)(?::(?<second>\\d\\d)(?:[.,](?<fraction>\\d+))?)?'
const ZONE = '(?<zone>[Zz]|[+-]\\d\\d(?::?\\d\\d(?::?\\d\\d)?)?)?'
const DATE_ONLY = new RegExp(`^${DATE}$`)
const TIME_ONLY = new RegExp(`^${TIME}${ZONE}$`)
const TIMESTAMP = new RegExp(`^${DATE}(?:[Tt ]${TIME}${ZONE})?$`)
const DURATION = new RegExp(
  '^P(?:(?<years>\\d+)Y)?(?:(?<months>\\d+)M)?(?:(?<weeks>\\d+)W)?(?:(?<days>\\d+)D)?' +
    '(?:T(?:(?<hours>\\d+)H)?(?:(?<minutes>\\d+)M)?(?:(?<seconds>\\d+)(?:[.,](?<fraction>\\d+))?S)?)?$',
)

/** Parse a date to days since 1970-01-01; undefined if it is none. */
export function parseDate(text) {
  const match = DATE_ONLY.exec(text)
  return match ? daysOf(match.groups) : undefined
}

/** Parse a time of day to `{nanos, isFiner, isZoned}`, in nanoseconds since midnight; undefined if it is none, or has a zone but UTC. */
export function parseTime(text) {
  const match = TIME_ONLY.exec(text)
  if (!match || zoneSeconds(match.groups.zone) !== 0n) return undefined
  const time = timeOfDay(match.groups)
  return time && { ...time, isZoned: match.groups.zone !== undefined }
}

/** Parse a timestamp as `parseTime` does, in nanoseconds since 1970-01-01T00:00; a date alone means midnight. */
export function parseTimestamp(text) {
  const match = TIMESTAMP.exec(text)
  if (!match) return undefined
  const days = daysOf(match.groups)
  const zone = zoneSeconds(match.groups.zone)
  const time = match.groups.hour === undefined ? { nanos: 0n, isFiner: false } : timeOfDay(match.groups)
  if (days === undefined || zone === undefined || !time) return undefined
  const nanos = time.nanos + days * NANOS_PER_DAY - zone * NANOS_PER_SECOND
  return { nanos, isFiner: time.isFiner, isZoned: match.groups.zone !== undefined }
}

/** Return the number of units of a time; undefined if it is finer than the unit. */
export function inUnit({ nanos, isFiner }, unit) {
  const [count, rest] = divideDown(nanos, UNIT_NANOS[unit])
  return rest || isFiner ? undefined : count
}

/** Parse a duration to `[months, days, millis]`; null if it is finer than a millisecond, undefined if it is none. */
export function parseDuration(text) {
  const match = DURATION.exec(text)
  if (!match || /[PT]$/.test(text)) return undefined
  const part = name => BigInt(match.groups[name] ?? 0)
  const fraction = match.groups.fraction ?? ''
  if (/[1-9]/.test(fraction.slice(3))) return null
  const seconds = (part('hours') * 60n + part('minutes')) * 60n + part('seconds')
  const millis = seconds * 1000n + BigInt(fraction.slice(0, 3).padEnd(3, '0'))
  return [part('years') * 12n + part('months'), part('weeks') * 7n + part('days'), millis]
}

/** Build the forms of 12 bytes in which writers store an INT96 instant (nanoseconds since 1970); empty if its day does not fit. */
export function int96Forms(nanos) {
  const [days, rest] = divideDown(nanos, NANOS_PER_DAY)
  const day = days + JULIAN_DAY_OF_EPOCH
  const forms = [int96(rest, day)]
  // Arrow C++ up to 22.0 rounds instants before 1970 towards zero.
  if (nanos < 0n && rest) forms.push(int96(rest - NANOS_PER_DAY, day + 1n))
  return forms.every(form => form) ? forms : []
}

/** Return the instant that 12 stored bytes mean, in nanoseconds since 1970. */
export function int96Instant(plain) {
  return (decodeInteger(plain.subarray(8)) - JULIAN_DAY_OF_EPOCH) * NANOS_PER_DAY + decodeInteger(plain.subarray(0, 8))
}

function int96(nanos, day) {
  const [low, high] = [encodeInteger(nanos, 8), encodeInteger(day, 4)]
  return high && join(low, high)
}

/** Return the form in which DuckDB compares the 12 bytes of an interval: 24 hours are a day, 30 days a month. */
export function normalizedInterval(plain) {
  const [months, days] = [0, 4].map(at => decodeInteger(plain.subarray(at, at + 4)))
  const [moreDays, millis] = divideDown(decodeInteger(plain.subarray(8), { signed: false }), MILLIS_PER_DAY)
  const [moreMonths, restOfDays] = divideDown(days + moreDays, DAYS_PER_MONTH)
  const all = months + moreMonths
  const whole = all > 2n ** 31n - 1n ? 2n ** 31n - 1n : all < -(2n ** 31n) ? -(2n ** 31n) : all
  const rest = restOfDays + (all - whole) * DAYS_PER_MONTH
  return join(encodeInteger(whole, 4), encodeInteger(rest, 4), encodeInteger(millis, 4, { signed: false }))
}

function timeOfDay({ hour, minute, second = '0', fraction = '' }) {
  const seconds = (BigInt(hour) * 60n + BigInt(minute)) * 60n + BigInt(second)
  const nanos = seconds * NANOS_PER_SECOND + BigInt(fraction.slice(0, 9).padEnd(9, '0'))
  const isFiner = /[1-9]/.test(fraction.slice(9))
  if (Number(minute) > 59 || Number(second) > 59 || nanos + BigInt(isFiner) > NANOS_PER_DAY) return undefined
  return { nanos, isFiner }
}

function zoneSeconds(zone) {
  if (!zone || zone === 'Z' || zone === 'z') return 0n
  const digits = zone.slice(1).replaceAll(':', '').padEnd(6, '0')
  const [hours, minutes, seconds] = [0, 2, 4].map(at => Number(digits.slice(at, at + 2)))
  if (hours > 23 || minutes > 59 || seconds > 59) return undefined
  return BigInt((hours * 60 + minutes) * 60 + seconds) * (zone[0] === '-' ? -1n : 1n)
}

/** Return the days since 1970-01-01 in the proleptic Gregorian calendar (BigInt); undefined for a date that does not exist. */
function daysOf(groups) {
  const [year, month, day] = [Number(groups.year), Number(groups.month), Number(groups.day)]
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return undefined
  // Years start in March here, so that the leap day is the last day of a year; 400 years have 146,097 days.
  const shifted = month <= 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  return BigInt(era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468)
}

function daysInMonth(year, month) {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}
