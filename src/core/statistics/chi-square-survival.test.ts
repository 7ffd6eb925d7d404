import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { computeChiSquareSurvival } from './chi-square-survival.ts'

/** How far a value is from the true one, as a share of it. */
const relativeError = (value: number, truth: number) => Math.abs(value / truth - 1)

describe('computeChiSquareSurvival', () => {
  it('returns the critical values of the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4', () => {
    const probabilities = [0.1, 0.05, 0.025, 0.01, 0.001]
    const table: [degreesOfFreedom: number, ...criticalValues: number[]][] = [
      [1, 2.706, 3.841, 5.024, 6.635, 10.828],
      [2, 4.605, 5.991, 7.378, 9.21, 13.816],
      [3, 6.251, 7.815, 9.348, 11.345, 16.266],
      [9, 14.684, 16.919, 19.023, 21.666, 27.877],
      [30, 40.256, 43.773, 46.979, 50.892, 59.703],
      [100, 118.498, 124.342, 129.561, 135.807, 149.449],
    ]
    for (const [degreesOfFreedom, ...criticalValues] of table)
      for (const [index, value] of criticalValues.entries()) {
        // The table's values are rounded to three decimals.
        const [above, below] = [value - 0.0005, value + 0.0005].map(at =>
          computeChiSquareSurvival(at, degreesOfFreedom),
        )
        const p = probabilities[index]!
        assert.ok(above! >= p && below! <= p, `${value} with ${degreesOfFreedom}: ${above} to ${below}`)
      }
  })

  it("equals Abramowitz and Stegun's table 26.2 of the normal distribution's far tail", () => {
    // x, and -log10 of the probability beyond it on one side. The square of a normal variable has one degree of freedom.
    for (const [x, digits] of [
      [5, 6.54265],
      [10, 23.11805],
      [15, 50.43522],
      [20, 88.5601],
      [25, 137.51475],
      [30, 197.30921],
    ] as const)
      assert.ok(Math.abs(-Math.log10(computeChiSquareSurvival(x * x, 1) / 2) - digits) <= 0.000005, `${x}`)
  })

  // Computed with mpmath 1.4.1 with 60 digits; values for even degrees also with their finite sum (Abramowitz & Stegun
  // 26.4.5) in Python's decimal.
  it('returns twelve correct digits in both tails, with few and with a million degrees of freedom', () => {
    const truths: [degreesOfFreedom: number, chiSquare: number, probability: number][] = [
      [1, 1e-300, 1],
      [1, 1e-9, 0.999974768674784],
      [1, 0.1, 0.7518296340458492],
      [1, 2.9, 0.0885795525797768],
      [1, 3.1, 0.07829229414640987],
      [1, 70, 5.930445850082487e-17],
      [1, 700, 2.9902269751246203e-154],
      [1, 1370, 6.942937364643268e-300],
      [2, 1e-12, 0.9999999999995],
      [2, 1381.5, 1.0258565254358083e-300],
      [3, 0.5, 0.9188914116546758],
      [3, 1390, 4.356067937864678e-301],
      [4, 10, 0.040427681994512805],
      [7, 1300, 1.6632784025498239e-276],
      [19, 5, 0.9994309626474822],
      [19, 1400, 1.2760895851616886e-285],
      [30, 12, 0.9985996461666381],
      [31, 33.5, 0.34694242199703423],
      [32, 100, 6.357982111016665e-9],
      [99, 150, 0.0007204453957169629],
      [99, 1400, 1.1867324453109372e-228],
      [199, 199, 0.48666782597231906],
      [999, 1400, 5.924458565939857e-16],
      [1_000, 3_500, 1.0443523005432747e-273],
      [10_001, 10_001, 0.4981194599910413],
      [10_001, 16_000, 6.187168457961074e-285],
      [1_000_000, 990_000, 0.99999999999935],
      [1_000_000, 1_000_000, 0.4998119368033945],
      [1_000_000, 1_000_002, 0.4992477480661297],
      [1_000_000, 1_052_000, 1.7720000826057243e-286],
    ]
    for (const [degreesOfFreedom, chiSquare, truth] of truths) {
      const value = computeChiSquareSurvival(chiSquare, degreesOfFreedom)
      assert.ok(relativeError(value, truth) < 1e-12, `${chiSquare} with ${degreesOfFreedom}: ${value}, not ${truth}`)
    }
  })

  it('returns 1 at 0, and 0 only below the smallest double', () => {
    assert.equal(computeChiSquareSurvival(0, 1), 1)
    assert.equal(computeChiSquareSurvival(Number.MIN_VALUE, 1_001), 1)
    assert.ok(computeChiSquareSurvival(1_480, 1) > 0)
    assert.equal(computeChiSquareSurvival(1_500, 1), 0)
    assert.equal(computeChiSquareSurvival(Number.MAX_VALUE, 1), 0)
    assert.equal(computeChiSquareSurvival(Infinity, 1), 0)
  })

  it('refuses a value that is not a statistic, and invalid degrees of freedom', () => {
    for (const [chiSquare, degreesOfFreedom] of [
      [Number.NaN, 1],
      [-1e-9, 1],
      [1, 0],
      [1, 1.5],
      [1, Infinity],
      [1, Number.NaN],
    ] as const)
      assert.throws(() => computeChiSquareSurvival(chiSquare, degreesOfFreedom), RangeError)
  })
})
