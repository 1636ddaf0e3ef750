"""The cells of a data frame as a model takes them: numbers, words, days and times in the forms that Lockstep reads."""

import datetime
import math
import re

import numpy

GAPS = {"", "na", "n/a", "nan", "null", "none", "?"}
TRUTHS = {"true": 1, "yes": 1, "t": 1, "y": 1, "on": 1, "1": 1, "false": 0, "no": 0, "f": 0, "n": 0, "off": 0, "0": 0}
PARTS = {"day": 4, "clock": 1, "both": 5}
#: What numpy makes of a date that is none, and the model takes for a gap.
NO_DATE = numpy.iinfo(numpy.int64).min
DAY = 86_400
EPOCH = datetime.date(1970, 1, 1)


class ColumnReader:
    """Reads the cells of one column, which `table.json` says what it holds."""

    def __init__(self, column, gaps):
        self.name, self.kind = column["name"], column["type"]
        self.form, self.day_first = column.get("form"), column.get("day_first", False)
        self.places = {value: place for place, value in enumerate(column.get("values", []))}
        #: Whether the model knows what to do with a gap.
        self.gaps = gaps

    def for_onnx(self, cells):
        """The cells as the input of a graph: words, seconds, or numbers."""
        if self.kind == "category":
            return numpy.array(self.each(cells, self.word), dtype=object)
        if self.kind == "date":
            return self.seconds(cells)
        return self.floats(cells)

    def numbers(self, cells):
        """The cells as arrays of numbers: of a date one for each of its parts, of a category its place."""
        if self.kind == "category":
            places = [self.places.get(word, math.nan) for word in self.each(cells, self.word)]
            return [numpy.array(places, dtype=numpy.float32)]
        if self.kind == "date":
            return self.parts(self.seconds(cells))
        return [self.floats(cells)]

    def each(self, cells, read):
        """What becomes of each cell; of equal ones, it is found out once."""
        known = {}
        made = []
        for row, cell in enumerate(cells):
            key = (type(cell), cell)
            try:
                found = known.get(key, known)
            except TypeError:
                self.wrong(row, cell, "a single value")
            if found is known:
                found = known[key] = read(row, cell)
            made.append(found)
        return made

    def wrong(self, row, cell, right):
        raise ValueError(f"row {row}: the column `{self.name}` holds {cell!r}, which is not {right}")

    def floats(self, cells):
        """Numbers, and 1 and 0 for true and false."""
        if self.kind == "number" and cells.dtype.kind in "iufb":
            numbers = cells.to_numpy(dtype=numpy.float64, na_value=math.nan)
        else:
            read = self.number if self.kind == "number" else self.truth
            numbers = numpy.array(self.each(cells, read), dtype=numpy.float64)
        with numpy.errstate(over="ignore"):
            floats = numbers.astype(numpy.float32)
        if numpy.isinf(floats).any():
            row = int(numpy.argmax(numpy.isinf(floats)))
            self.wrong(row, numbers[row], "a number of single precision")
        if not self.gaps and numpy.isnan(floats).any():
            row = int(numpy.argmax(numpy.isnan(floats)))
            raise ValueError(
                f"row {row}: the column `{self.name}` has no value; the model was trained on rows without gaps"
            )
        return floats

    def number(self, row, cell):
        if is_gap(cell):
            return math.nan
        try:
            return float(cell.strip() if isinstance(cell, str) else cell)
        except (TypeError, ValueError):
            self.wrong(row, cell, "a number")

    def truth(self, row, cell):
        if is_gap(cell):
            return math.nan
        word = f"{cell:g}" if isinstance(cell, float) else str(cell).strip().lower()
        if word not in TRUTHS:
            self.wrong(row, cell, "true or false")
        return TRUTHS[word]

    def word(self, row, cell):
        """A category as the training table had it; the empty word for all that is none."""
        if is_gap(cell):
            return ""
        if isinstance(cell, (bool, numpy.bool_)):
            words = [str(cell), str(cell).lower(), str(cell).upper()]
        elif isinstance(cell, (float, numpy.floating)) and float(cell).is_integer():
            words = [str(int(cell)), str(float(cell))]
        else:
            words = [str(cell).strip()]
        return next((word for word in words if word in self.places), "")

    def seconds(self, cells):
        """Seconds since 1970, or since midnight."""
        if cells.dtype.kind == "M":
            if getattr(cells.dt, "tz", None) is not None:
                cells = cells.dt.tz_convert("UTC").dt.tz_localize(None)
            return cells.to_numpy(dtype="datetime64[s]").astype(numpy.int64)
        return numpy.array(self.each(cells, self.moment), dtype=numpy.int64)

    def moment(self, row, cell):
        if is_gap(cell):
            return NO_DATE
        if isinstance(cell, numpy.datetime64):
            return int(cell.astype("datetime64[s]").astype(numpy.int64))
        if isinstance(cell, datetime.datetime):
            offset = cell.utcoffset() or datetime.timedelta()
            clock = of_day(cell.hour, cell.minute, cell.second)
            return of_date(cell) + clock - math.floor(offset.total_seconds())
        if isinstance(cell, datetime.date):
            return of_date(cell)
        if isinstance(cell, datetime.time):
            return of_day(cell.hour, cell.minute, cell.second)
        seconds = read_moment(str(cell).strip(), self.day_first)
        if seconds is None:
            self.wrong(row, cell, "a date or a time that Lockstep reads")
        return seconds

    def parts(self, seconds):
        """Year, month, day, weekday and hour, as far as the column has them."""
        gap = seconds == NO_DATE
        seconds = numpy.where(gap, 0, seconds)
        days = seconds // DAY
        dates = days.astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        numbers = [
            dates.astype("datetime64[Y]").astype(numpy.int64) + 1970,
            months.astype(numpy.int64) % 12 + 1,
            (dates - months.astype("datetime64[D]")).astype(numpy.int64) + 1,
            (days + 3) % 7,
            (seconds % DAY).astype(numpy.float32) / numpy.float32(3600),
        ]
        numbers = numbers[4:] if self.form == "clock" else numbers[: PARTS[self.form]]
        return [numpy.where(gap, numpy.float32(math.nan), part.astype(numpy.float32)) for part in numbers]


def is_gap(cell):
    """Whether a cell has no value."""
    if isinstance(cell, str):
        return cell.strip().lower() in GAPS
    # NaN, and what pandas and numpy have for it, are not equal to themselves, or not known to be.
    return cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType")


def of_date(date):
    return (datetime.date(date.year, date.month, date.day) - EPOCH).days * DAY


def of_day(hours, minutes, seconds):
    return (hours * 60 + minutes) * 60 + seconds


DATE = re.compile(r"([0-9]{1,4})([-/.])([0-9]{1,2})\2([0-9]{1,4})")
CLOCK = re.compile(
    r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:[.,][0-9]+)?)?\s*(?:([-+])([0-9]{1,2}):?([0-9]{2})?)?\s*[Zz]?"
)


def read_moment(text, day_first):
    """Seconds since 1970 of a day with or without a time, or since midnight of a time; None if it is neither."""
    first, _, second = re.sub("[Tt ]", " ", text, count=1).partition(" ")
    day = read_day(first, day_first)
    if day is None:
        return read_clock(text)
    clock = read_clock(second.strip()) if second else 0
    return None if clock is None else day + clock


def read_day(text, day_first):
    found = DATE.fullmatch(text)
    if not found:
        return None
    first, sign, middle, last = found.groups()
    if len(first) == 4 and len(last) <= 2:
        year, month, day = first, middle, last
    elif len(last) == 4 and len(first) <= 2:
        is_day_first = sign != "/" or day_first
        year, month, day = (last, middle, first) if is_day_first else (last, first, middle)
    else:
        return None
    try:
        return of_date(datetime.date(int(year), int(month), int(day)))
    except ValueError:
        return None


def read_clock(text):
    found = CLOCK.fullmatch(text)
    if not found:
        return None
    hours, minutes, seconds, sign, off_hours, off_minutes = found.groups()
    hours, minutes, seconds = int(hours), int(minutes), int(seconds or 0)
    off_hours, off_minutes = int(off_hours or 0), int(off_minutes or 0)
    if hours > 23 or minutes > 59 or seconds > 60 or off_hours > 23 or off_minutes > 59:
        return None
    offset = of_day(off_hours, off_minutes, 0)
    return of_day(hours, minutes, seconds) - (-offset if sign == "-" else offset)
