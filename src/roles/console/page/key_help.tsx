// The keys, in a dialog.

import { Dialog } from "./parts.tsx";

const ROWS: readonly (readonly [readonly string[], string])[] = [
  [["j", "↓"], "next row"],
  [["k", "↑"], "row before"],
  [["Enter"], "open the row, or confirm"],
  [["Escape"], "leave what is open, or take back"],
  [["a"], "approve the open question; then Enter"],
  [["r"], "refuse the open question; then Enter"],
  [["m"], "approve and remember: say what, and for how long"],
  [["l"], "look again at a question that has changed"],
  [["/"], "go to the filter"],
  [["1 … 7"], "Questions, Calls, Sessions, Grants, Policy, Audit, Load"],
  [["?"], "these keys"],
];

export function KeyHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="facts">
        {ROWS.map(([keys, what]) => (
          <div key={what}>
            <dt class="badges">
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
